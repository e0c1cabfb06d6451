-- The 100 paths with the most requests, links or not, and how they were answered. Percentages are of all
-- requests in scope that have a path.
SELECT
    path,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits,
    total_if(visits, is_ai(bot_category) AND NOT is_referral(bot_category)) AS agent_fetches,
    total_if(visits, is_referral(bot_category)) AS ai_referrals,
    total(errors_4xx) AS errors_4xx,
    total(errors_5xx) AS errors_5xx,
    max(last_visit) AS last_visit
FROM visited_paths
GROUP BY path
ORDER BY visits DESC, path
LIMIT 100;

-- Requests by people, AI agents, people whom AI referred, and other automation on every day of the range. Visitors are
-- people, including AI referrals.
SELECT
    day AS date,
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category) AND NOT is_referral(bot_category)) AS agent_fetches,
    total_if(visits, is_referral(bot_category)) AS ai_referral_requests,
    total_if(visits, is_other(bot_category)) AS other_visits,
    total(people_visitors) AS people_visitors,
    total(unidentified_people_visits) AS unidentified_people_visits
FROM (
    SELECT day, bot_category, visits, 0 AS people_visitors, 0 AS unidentified_people_visits FROM daily_categories
    UNION ALL
    SELECT day, NULL, 0, unique_visitors, unidentified_visits FROM daily_people
    UNION ALL
    SELECT day, NULL, 0, 0, 0 FROM days_in_scope
)
GROUP BY day
ORDER BY date;

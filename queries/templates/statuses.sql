-- Requests by the HTTP status of the answer; unknown if the log does not contain it.
SELECT
    coalesce(CAST(status AS VARCHAR), 'unknown') AS status,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits
FROM daily_statuses
GROUP BY daily_statuses.status
ORDER BY visits DESC, 1;

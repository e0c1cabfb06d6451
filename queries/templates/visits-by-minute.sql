-- Requests in each of the 60 latest minutes that have any.
SELECT
    date_trunc('minute', visited_at) AS minute,
    count(*) AS total_visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_ai(bot_category)) AS ai_visits,
    count(*) FILTER (is_other(bot_category)) AS other_visits
FROM visits_in_scope
GROUP BY minute
ORDER BY minute DESC
LIMIT 60;

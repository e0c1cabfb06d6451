-- Requests in each of the 60 latest minutes with requests, with the time of the first request.
SELECT
    min(first_seen) AS first_seen,
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits
FROM counted_minutes
GROUP BY utc_day, minute_of_day
ORDER BY first_seen DESC
LIMIT 60;

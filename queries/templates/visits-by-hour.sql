-- Requests in every hour of every day of the range.
SELECT
    days_in_scope.day AS date,
    hours.hour,
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits
FROM days_in_scope
JOIN hours ON TRUE
LEFT JOIN daily_hours ON daily_hours.day = days_in_scope.day AND daily_hours.hour = hours.hour
GROUP BY days_in_scope.day, hours.hour
ORDER BY date, hour;

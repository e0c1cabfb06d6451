-- Requests on every day of the range. Tablets are in neither mobile_visits nor desktop_visits.
SELECT
    days_in_scope.day AS date,
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, device_type = 'mobile') AS mobile_visits,
    total_if(visits, device_type = 'desktop') AS desktop_visits
FROM days_in_scope LEFT JOIN daily_categories ON daily_categories.day = days_in_scope.day
GROUP BY days_in_scope.day
ORDER BY date;

-- Requests in every month of the range; in the first and the last month, only the days in the range are counted.
SELECT
    month_of(days_in_scope.day) AS month,
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits
FROM days_in_scope LEFT JOIN daily_categories ON daily_categories.day = days_in_scope.day
GROUP BY month_of(days_in_scope.day)
ORDER BY month;

-- Requests by day of the week, with the average for that day in the range.
SELECT
    day_of_week,
    day_name,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits,
    days_in_range,
    rate(total(visits), days_in_range) AS avg_visits
FROM weekdays LEFT JOIN daily_categories ON weekday_of(day) = day_of_week
GROUP BY day_of_week, day_name, days_in_range
ORDER BY day_of_week;

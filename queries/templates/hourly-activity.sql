-- Requests by hour of the day.
SELECT
    hours.hour,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits
FROM hours LEFT JOIN daily_hours ON daily_hours.hour = hours.hour
GROUP BY hours.hour
ORDER BY hour;

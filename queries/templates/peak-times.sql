-- The ten busiest hours of the week. The percentage is of all requests in scope.
WITH cells AS (
    SELECT
        weekday_of(day) AS day_of_week,
        hour,
        total(visits) AS visits,
        share(total(visits), sum(total(visits)) OVER ()) AS percentage,
        total_if(visits, is_human(bot_category)) AS human_clicks,
        total_if(visits, is_ai(bot_category)) AS ai_visits
    FROM daily_hours GROUP BY weekday_of(day), hour
)
SELECT
    row_number() OVER (ORDER BY visits DESC, day_of_week, hour) AS rank,
    day_of_week,
    day_name,
    hour,
    visits,
    percentage,
    rate(visits, days_in_range) AS avg_visits,
    human_clicks,
    ai_visits
FROM cells JOIN weekdays USING (day_of_week)
ORDER BY rank
LIMIT 10;

-- The ten busiest hours of the week, by visits per occurrence. The percentage is of all requests in scope.
WITH cells AS (
    SELECT
        weekday_of(day) AS day_of_week,
        hour,
        total(visits) AS visits,
        share(total(visits), sum(total(visits)) OVER ()) AS percentage,
        total_if(visits, is_human(bot_category)) AS human_clicks,
        total_if(visits, is_ai(bot_category)) AS ai_visits
    FROM daily_hours GROUP BY weekday_of(day), hour
), weighed AS (  -- weekdays occur n or n + 1 times: times the other number, visits per occurrence compare as integers
    SELECT *, visits * (min(days_in_range) OVER () * max(days_in_range) OVER () // days_in_range) AS weight
    FROM cells JOIN weekdays USING (day_of_week)
)
SELECT
    row_number() OVER (ORDER BY weight DESC, visits DESC, day_of_week, hour) AS rank,
    day_of_week,
    day_name,
    hour,
    visits,
    percentage,
    rate(visits, days_in_range) AS avg_visits,
    human_clicks,
    ai_visits
FROM weighed
ORDER BY rank
LIMIT 10;

-- Visits in scope in each minute. Counted from visits, since answers only show the latest minutes.
CREATE VIEW counted_minutes AS
SELECT utc_day, minute_of_day, bot_category, count(*) AS visits, min(visited_at) AS first_seen
FROM (
    SELECT
        visited_at, bot_category, CAST(visited_at AS DATE) AS utc_day,
        60 * extract(hour FROM visited_at) + extract(minute FROM visited_at) AS minute_of_day
    FROM visits_in_scope
)
GROUP BY utc_day, minute_of_day, bot_category;

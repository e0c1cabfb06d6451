-- Visits of each day by hour and category.
CREATE VIEW raw_hours AS
SELECT for_domain, day, hour_of(visited_at) AS hour, bot_category, count(*) AS visits
FROM raw_visits GROUP BY ALL;

CREATE VIEW daily_hours AS
SELECT day, hour, bot_category, visits
FROM counted('hours');

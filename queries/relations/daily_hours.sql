-- Daily visits by hour and category.
-- Serves: traffic_type
CREATE VIEW daily_hours_counted AS
SELECT for_domain, day, hour_of(visited_at, utc_offset) AS hour, bot_category, count(*) AS visits
FROM visits_to_count('daily_hours') GROUP BY ALL;

CREATE VIEW daily_hours_stored AS
SELECT for_domain, day, hour, bot_category, visits FROM rollup_rows('daily_hours');

CREATE VIEW daily_hours AS FROM query_table(parts_of('daily_hours'), TRUE);

-- Daily visits by the HTTP status of the answer.
-- Serves: traffic_type
CREATE VIEW daily_statuses_counted AS
SELECT for_domain, day, status, bot_category, count(*) AS visits
FROM visits_to_count('daily_statuses') GROUP BY ALL;

CREATE VIEW daily_statuses_stored AS
SELECT for_domain, day, status, bot_category, visits FROM rollup_rows('daily_statuses');

CREATE VIEW daily_statuses AS FROM query_table(parts_of('daily_statuses'), TRUE);

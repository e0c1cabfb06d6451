-- Daily AI-related visits by confidence and detection method.
CREATE VIEW daily_confidence_counted AS
SELECT for_domain, day, bot_category, confidence, detection_method, count(*) AS visits
FROM visits_to_count('daily_confidence') WHERE is_ai(bot_category) GROUP BY ALL;

CREATE VIEW daily_confidence_stored AS
SELECT for_domain, day, bot_category, confidence, detection_method, visits FROM rollup_rows('daily_confidence');

CREATE VIEW daily_confidence AS FROM query_table(parts_of('daily_confidence'), TRUE);

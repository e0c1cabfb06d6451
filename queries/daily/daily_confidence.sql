-- AI-related visits of each day by how sure the classification is and what it rests on.
CREATE VIEW raw_confidence AS
SELECT for_domain, day, confidence, detection_method, count(*) AS visits
FROM raw_visits WHERE is_ai(bot_category) GROUP BY ALL;

CREATE VIEW daily_confidence AS
SELECT day, confidence, detection_method, visits
FROM counted('confidence');

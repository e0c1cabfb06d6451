-- AI-related visits of each day by how sure the classification is and what it rests on.
CREATE VIEW daily_confidence AS
SELECT day, confidence, detection_method, count(*) AS visits
FROM visits_in_scope WHERE is_ai(bot_category) GROUP BY day, confidence, detection_method;

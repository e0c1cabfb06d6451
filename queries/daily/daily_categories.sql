-- Visits of each day by category, AI source and device type.
CREATE VIEW daily_categories AS
SELECT day, bot_category, ai_source, device_type, count(*) AS visits
FROM visits_in_scope GROUP BY day, bot_category, ai_source, device_type;

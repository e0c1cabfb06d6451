-- Visits of each day by category, AI source and device type.
CREATE VIEW raw_categories AS
SELECT for_domain, day, bot_category, ai_source, device_type, count(*) AS visits
FROM raw_visits GROUP BY ALL;

CREATE VIEW daily_categories AS
SELECT day, bot_category, ai_source, device_type, visits
FROM counted('categories');

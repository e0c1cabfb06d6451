-- The links requested by each category and AI source.
-- Serves: traffic_type
CREATE VIEW monthly_link_sources AS
SELECT for_domain, bit_or(day_bit(day)) AS days, domain, short_code, bot_category, ai_source
FROM visits_to_count('monthly_link_sources') GROUP BY ALL
UNION ALL BY NAME
SELECT for_domain, days, domain, short_code, bot_category, ai_source FROM rollup_rows('monthly_link_sources');

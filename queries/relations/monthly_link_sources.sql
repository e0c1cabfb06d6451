-- The short codes requested by each AI source.
-- Serves: traffic_type
CREATE VIEW monthly_link_sources AS
SELECT for_domain, bit_or(day_bit(day)) AS days, domain, short_code, bot_category, ai_source
FROM visits_to_count('monthly_link_sources')
WHERE is_ai(bot_category) AND short_code IS NOT NULL GROUP BY ALL
UNION ALL BY NAME
SELECT for_domain, days, domain, short_code, bot_category, ai_source FROM rollup_rows('monthly_link_sources');

-- The paths requested by each AI platform's assistants, without vulnerability probes.
CREATE VIEW monthly_assistant_pages AS
SELECT for_domain, bit_or(day_bit(day)) AS days, ai_source, path
FROM visits_to_count('monthly_assistant_pages')
WHERE bot_category = 'ai_assistant' AND NOT is_malicious AND path <> '' GROUP BY ALL
UNION ALL BY NAME
SELECT for_domain, days, ai_source, path FROM rollup_rows('monthly_assistant_pages');

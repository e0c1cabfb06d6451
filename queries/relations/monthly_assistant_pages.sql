-- The paths requested by each AI platform's assistants, without vulnerability probes.
-- Serves: ai_source, path
CREATE VIEW monthly_assistant_pages_counted AS
SELECT for_domain, bit_or(day_bit(day)) AS days, ai_source, path
FROM visits_to_count('monthly_assistant_pages')
WHERE bot_category = 'ai_assistant' AND NOT is_malicious AND path <> '' GROUP BY ALL;

CREATE VIEW monthly_assistant_pages_stored AS
SELECT for_domain, days, ai_source, path
FROM rollup_rows('monthly_assistant_pages')
WHERE has_group('ai') AND matches(ai_source, getvariable('ai_source')) AND matches(path, getvariable('path'));

CREATE VIEW monthly_assistant_pages AS FROM query_table(parts_of('monthly_assistant_pages'), TRUE);

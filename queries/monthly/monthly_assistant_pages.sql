-- The paths that each AI platform's assistants asked for, without probes for weaknesses.
CREATE VIEW raw_assistant_pages AS
SELECT for_domain, bit_or(bit_of(day)) AS days, ai_source, path
FROM raw_visits
WHERE bot_category = 'ai_assistant' AND NOT is_malicious AND path <> '' GROUP BY ALL;

CREATE VIEW monthly_assistant_pages AS
SELECT ai_source, path
FROM counted('assistant_pages');

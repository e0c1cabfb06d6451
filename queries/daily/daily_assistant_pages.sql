-- The paths that each AI platform's assistants asked for on each day, without probes for weaknesses.
CREATE VIEW daily_assistant_pages AS
SELECT day, ai_source, path, count(*) AS visits
FROM visits_in_scope WHERE bot_category = 'ai_assistant' AND NOT is_malicious AND path <> ''
GROUP BY day, ai_source, path;

-- The stored visits with the classification of today's rules, in their stored order.
-- Parameters: probe_pattern, rules_version.
SELECT stored_visits.* EXCLUDE (request, file_row_number) REPLACE (
    classified.bot_category AS bot_category, classified.agent_kind AS agent_kind, classified.ai_source AS ai_source,
    classified.agent AS agent, classified.operator AS operator, classified.confidence AS confidence,
    classified.detection_method AS detection_method, classified.device_type AS device_type,
    classified.operating_system AS operating_system, classified.browser AS browser,
    classified.referrer_type AS referrer_type,
    regexp_matches(path, $probe_pattern) AS is_malicious,
    $rules_version AS rules_version
)
FROM stored_visits JOIN classified USING (request)
ORDER BY file_row_number

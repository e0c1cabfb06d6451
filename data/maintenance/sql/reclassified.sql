-- The visits that are kept with their new answers, in the order they had. Parameters: probe_pattern, rules_version.
SELECT kept.* EXCLUDE (request, file_row_number) REPLACE (
    identities.bot_category AS bot_category, identities.agent_kind AS agent_kind, identities.ai_source AS ai_source,
    identities.agent AS agent, identities.operator AS operator, identities.confidence AS confidence,
    identities.detection_method AS detection_method, identities.device_type AS device_type,
    identities.operating_system AS operating_system, identities.browser AS browser,
    origins.referrer_type AS referrer_type,
    regexp_matches(path, $probe_pattern) AS is_malicious,
    $rules_version AS rules_version
)
FROM kept JOIN answers USING (request) JOIN identities USING (identity) JOIN origins USING (origin)
ORDER BY file_row_number

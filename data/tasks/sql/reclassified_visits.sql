-- The stored visits with their new classifications and signals, in their stored order.
-- Parameter: rules_version.
SELECT stored_visits.* EXCLUDE (request, file_row_number, path_kind, is_internal, new_signals) REPLACE (
    classified.bot_category AS bot_category, classified.agent_kind AS agent_kind, classified.ai_source AS ai_source,
    classified.agent AS agent, classified.operator AS operator, classified.confidence AS confidence,
    classified.detection_method AS detection_method, classified.device_type AS device_type,
    classified.operating_system AS operating_system, classified.browser AS browser,
    CASE WHEN stored_visits.is_internal THEN 'internal' ELSE classified.referrer_type END AS referrer_type,
    stored_visits.path_kind = 'probe' AS is_malicious,
    new_signals AS signals, $rules_version AS rules_version
)
FROM stored_visits JOIN classified USING (request)
ORDER BY file_row_number

-- The drawn visits as an import of those lines would have landed them, joined with the classifier's answers.
-- Parameters: organization, short_code_pattern, probe_pattern, rules_version.
WITH paths AS (
    SELECT
        path,
        nullif(regexp_extract(path, $short_code_pattern, 1), '') AS short_code,
        regexp_matches(path, $probe_pattern) AS is_malicious
    FROM (SELECT DISTINCT path FROM drawn)
)
SELECT
    day,
    visited_at,
    domain,
    short_code,
    path,
    'GET' AS method,
    status,
    -- as classify.together: an automaton by its name, or a person by the way they came
    CASE WHEN agents.device_type = 'bot' THEN agents.bot_category ELSE origins.bot_category END AS bot_category,
    CASE WHEN agents.device_type = 'bot' THEN agents.agent_kind ELSE origins.agent_kind END AS agent_kind,
    CASE WHEN agents.device_type = 'bot' THEN agents.ai_source ELSE origins.ai_source END AS ai_source,
    CASE WHEN agents.device_type = 'bot' THEN agents.agent ELSE origins.agent END AS agent,
    CASE WHEN agents.device_type = 'bot' THEN agents.operator ELSE origins.operator END AS operator,
    CASE WHEN agents.device_type = 'bot' THEN agents.confidence ELSE origins.confidence END AS confidence,
    CASE WHEN agents.device_type = 'bot' THEN agents.detection_method ELSE origins.detection_method END AS detection_method,
    device_type,
    operating_system,
    browser,
    user_agent,
    country,
    referrer,
    referrer_type,
    utm_source,
    utm_medium,
    utm_campaign,
    utm_term,
    utm_content,
    CAST('0x' || left(sha256(
        salt || chr(0) || $organization || chr(0) || ip || chr(0) || user_agent), 16) AS UBIGINT)::BIT::BIGINT AS visitor,
    is_malicious,
    $rules_version AS rules_version
FROM drawn
JOIN paths USING (path)
JOIN agents ON agents.number = caller
JOIN origins ON origins.number = origin
ORDER BY day, short_code, visited_at, a, b

-- From the facts of readable requests, their answers from the classifier and the salts of their days, to visits.
-- Parameters: organization, domain (for lines that name none), short_code_pattern, probe_pattern, rules_version.
WITH paths AS (
    SELECT
        path,
        nullif(regexp_extract(path, $short_code_pattern, 1), '') AS short_code,
        regexp_matches(path, $probe_pattern) AS is_malicious
    FROM (SELECT DISTINCT path FROM facts)
)
SELECT
    CAST(visited_at AS DATE) AS day,
    visited_at,
    CASE WHEN domain <> '' THEN domain ELSE $domain END AS domain,
    short_code,
    path,
    method,
    status,
    identities.* EXCLUDE (identity),
    coalesce(nullif(facts.country, ''), countries.country) AS country,
    origins.* EXCLUDE (origin),
    CASE WHEN facts.ip NOT IN ('', '-') THEN CAST('0x' || left(sha256(
        salt || chr(0) || $organization || chr(0) || facts.ip || chr(0) || coalesce(user_agent, '')), 16) AS UBIGINT)
    END AS visitor,
    is_malicious,
    $rules_version AS rules_version
FROM facts
JOIN paths USING (path)
JOIN answers USING (request)
LEFT JOIN confirmations ON confirmations.identity = answers.identity AND confirmations.ip = facts.ip
    AND confirmations.day = CAST(visited_at AS DATE)
JOIN identities ON identities.identity = coalesce(confirmed, answers.identity)
JOIN origins USING (origin)
LEFT JOIN countries ON countries.ip = facts.ip
JOIN salts ON salts.day = CAST(visited_at AS DATE)
ORDER BY day, short_code, visited_at, number

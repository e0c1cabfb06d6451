-- Compiled from queries/jobs/impersonated_agent.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), visits_in_scope AS (
    SELECT
        *
    FROM visits_in_days
    WHERE
        (
            CAST(:short_code AS STRING) IS NULL OR short_code = CAST(:short_code AS STRING)
        )
        AND (
            CAST(:domain AS STRING) IS NULL OR domain = CAST(:domain AS STRING)
        )
        AND (
            CAST(:no_domain AS BOOLEAN) IS NULL OR domain IS NULL
        )
        AND (
            CAST(:traffic_type AS STRING) IS NULL
            OR bot_category = CAST(:traffic_type AS STRING)
            OR CAST(:traffic_type AS STRING) = 'ai'
            AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
            OR CAST(:traffic_type AS STRING) = 'other'
            AND bot_category IN ('search_crawler', 'other_bot')
        )
)
SELECT
    domain,
    agent,
    COUNT(*) AS visits,
    COALESCE(CAST(SUM(1) FILTER(WHERE
        is_malicious) AS BIGINT), 0) AS probes,
    COALESCE(CAST(SUM(1) FILTER(WHERE
        COALESCE(status IN (401, 403, 405, 406, 429, 451), FALSE)) AS BIGINT), 0) AS refused,
    COUNT(DISTINCT day) AS days,
    MIN(visited_at) AS first_seen,
    MAX(visited_at) AS last_seen
FROM visits_in_scope
WHERE
    confidence = 'contradicted' AND NOT agent IS NULL
GROUP BY
    domain,
    agent
HAVING
    (
        COUNT(*) >= 50 OR COALESCE(CAST(SUM(1) FILTER(WHERE
            is_malicious) AS BIGINT), 0) >= 5
    )
    AND COUNT(DISTINCT day) >= 2
    AND COALESCE(
        CAST(SUM(1) FILTER(WHERE
            day > CAST(:end_date AS DATE) - 7 AND NOT COALESCE(status IN (401, 403, 405, 406, 429, 451), FALSE)) AS BIGINT),
        0
    ) > 0
ORDER BY
    visits DESC,
    domain NULLS LAST,
    agent NULLS LAST
LIMIT 100;

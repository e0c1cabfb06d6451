-- Compiled from queries/jobs/server_errors.sql by `python -m queries.compiler`; do not edit.
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
    path,
    MAX(short_code) AS short_code,
    COUNT(*) AS visits,
    COALESCE(CAST(SUM(1) FILTER(WHERE
        is_error) AS BIGINT), 0) AS errors,
    CASE
        WHEN COUNT(*) > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(COALESCE(CAST(SUM(1) FILTER(WHERE
                is_error) AS BIGINT), 0) AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(COUNT(*) AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(COUNT(*) AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    COALESCE(CAST(SUM(1) FILTER(WHERE
        is_error AND bot_category IN ('human', 'ai_referral')) AS BIGINT), 0) AS people,
    COUNT(DISTINCT day) FILTER(WHERE
        is_error) AS days,
    MIN(visited_at) FILTER(WHERE
        is_error) AS first_seen,
    MAX(visited_at) FILTER(WHERE
        is_error) AS last_seen
FROM (
    SELECT
        *,
        COALESCE(status BETWEEN 500 AND 599, FALSE) AS is_error,
        day > CAST(:end_date AS DATE) - 7 AS is_recent
    FROM visits_in_scope
)
WHERE
    (
        bot_category IN ('human', 'ai_referral')
        OR bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
    )
    AND path <> ''
    AND NOT is_malicious
GROUP BY
    domain,
    path
HAVING
    COALESCE(CAST(SUM(1) FILTER(WHERE
        is_error) AS BIGINT), 0) >= 20
    AND COUNT(DISTINCT day) FILTER(WHERE
        is_error) >= 2
    AND 20 * COALESCE(CAST(SUM(1) FILTER(WHERE
        is_error) AS BIGINT), 0) >= COUNT(*)
    AND 20 * COALESCE(CAST(SUM(1) FILTER(WHERE
        is_error AND is_recent) AS BIGINT), 0) >= COALESCE(CAST(SUM(1) FILTER(WHERE
        is_recent) AS BIGINT), 0)
ORDER BY
    errors DESC,
    domain NULLS LAST,
    path NULLS LAST
LIMIT 100;

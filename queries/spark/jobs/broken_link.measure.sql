-- Compiled from queries/jobs/broken_link.measure.sql by `python -m queries.compiler`; do not edit.
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
    day,
    COALESCE(CAST(SUM(1) FILTER(WHERE
        COALESCE(status IN (404, 410), FALSE)) AS BIGINT), 0) AS events,
    COUNT(*) AS visits
FROM visits_in_scope AS visits
JOIN subject
    ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.path = subject.path
WHERE
    bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
    AND NOT is_malicious
GROUP BY
    day
ORDER BY
    day NULLS LAST;

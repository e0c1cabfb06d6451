-- Compiled from queries/jobs/ai_attention_gap.sql by `python -m queries.compiler`; do not edit.
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
), links AS (
    SELECT
        domain,
        short_code,
        ai_source,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            agent_kind = 'assistant_fetch') AS BIGINT), 0) AS agent_fetches,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            bot_category = 'ai_referral') AS BIGINT), 0) AS ai_referrals
    FROM visits_in_scope
    WHERE
        NOT ai_source IS NULL AND NOT short_code IS NULL AND COALESCE(status < 400, TRUE) AND NOT is_malicious
    GROUP BY
        domain,
        short_code,
        ai_source
), sources AS (
    SELECT
        ai_source,
        COALESCE(CAST(SUM(agent_fetches) AS BIGINT), 0) AS all_fetches,
        COALESCE(CAST(SUM(ai_referrals) AS BIGINT), 0) AS all_referrals
    FROM links
    GROUP BY
        ai_source
    HAVING
        COALESCE(CAST(SUM(agent_fetches) AS BIGINT), 0) > 0
)
SELECT
    domain,
    short_code,
    agent_fetches,
    ai_referrals,
    expected_referrals
FROM (
    SELECT
        domain,
        short_code,
        COALESCE(CAST(SUM(agent_fetches) AS BIGINT), 0) AS agent_fetches,
        COALESCE(CAST(SUM(ai_referrals) AS BIGINT), 0) AS ai_referrals,
        CAST(COALESCE(CAST(SUM(100 * agent_fetches * all_referrals DIV all_fetches) AS BIGINT), 0) AS DOUBLE) / 100 AS expected_referrals,
        COALESCE(CAST(SUM(ai_referrals) AS BIGINT), 0) = 0
        AND COALESCE(CAST(SUM(100 * agent_fetches * all_referrals DIV all_fetches) AS BIGINT), 0) >= 500 AS is_kept
    FROM links
    LEFT JOIN sources
        ON links.ai_source = sources.ai_source
    GROUP BY
        domain,
        short_code
)
WHERE
    is_kept
ORDER BY
    expected_referrals DESC,
    domain NULLS LAST,
    short_code NULLS LAST
LIMIT 100;

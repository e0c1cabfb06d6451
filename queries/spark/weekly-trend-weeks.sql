-- Compiled from queries/templates/weekly-trend-weeks.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH days_in_scope AS (
    SELECT
        CAST(day AS DATE) AS day
    FROM (
        SELECT
            EXPLODE(
                SEQUENCE(
                    CAST(CAST(:start_date AS DATE) AS TIMESTAMP_NTZ),
                    CAST(CAST(:end_date AS DATE) AS TIMESTAMP_NTZ),
                    INTERVAL '1' DAY
                )
            ) AS day
    )
), weeks_in_scope AS (
    SELECT DISTINCT
        CAST(TRUNC(day, 'WEEK') AS DATE) AS week
    FROM days_in_scope
), visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), all_visits AS (
    SELECT
        CAST(:domain AS STRING) AS for_domain,
        *
    FROM visits_in_days
), visits_to_count AS (
    SELECT
        *
    FROM all_visits
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
), daily_categories AS (
    SELECT
        for_domain,
        day,
        bot_category,
        ai_source,
        device_type,
        COUNT(*) AS visits
    FROM visits_to_count
    GROUP BY
        for_domain,
        day,
        bot_category,
        ai_source,
        device_type
)
SELECT
    week,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS total_visits,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'human') AS BIGINT), 0) AS human_visits,
    COALESCE(
        CAST(SUM(visits) FILTER(WHERE
            bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS BIGINT),
        0
    ) AS ai_visits,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'ai_assistant') AS BIGINT), 0) AS ai_assistant_requests,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'ai_training') AS BIGINT), 0) AS ai_training_requests,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'ai_coding_agent') AS BIGINT), 0) AS ai_coding_agent_requests,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'ai_referral') AS BIGINT), 0) AS ai_referral_requests,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category IN ('search_crawler', 'other_bot')) AS BIGINT), 0) AS other_visits,
    COALESCE(
        CASE
            WHEN COALESCE(CAST(SUM(visits) AS BIGINT), 0) > 0
            THEN CAST(CAST((
                200 * CAST(100 * CAST(COALESCE(
                    CAST(SUM(visits) FILTER(WHERE
                        bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS BIGINT),
                    0
                ) AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS DECIMAL(38, 0))
            ) DIV (
                2 * CAST(COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS DECIMAL(38, 0))
            ) AS BIGINT) AS DOUBLE) / 100
        END,
        0
    ) AS ai_pct
FROM weeks_in_scope
LEFT JOIN daily_categories
    ON CAST(TRUNC(day, 'WEEK') AS DATE) = week
GROUP BY
    week
ORDER BY
    week NULLS LAST;

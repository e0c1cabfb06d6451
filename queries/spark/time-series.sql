-- Compiled from queries/templates/time-series.sql by `python -m queries.compiler`; do not edit.
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
    days_in_scope.day AS date,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS total_visits,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'human') AS BIGINT), 0) AS human_clicks,
    COALESCE(
        CAST(SUM(visits) FILTER(WHERE
            bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS BIGINT),
        0
    ) AS ai_visits,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        device_type = 'mobile') AS BIGINT), 0) AS mobile_visits,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        device_type = 'desktop') AS BIGINT), 0) AS desktop_visits
FROM days_in_scope
LEFT JOIN daily_categories
    ON daily_categories.day = days_in_scope.day
GROUP BY
    days_in_scope.day
ORDER BY
    date NULLS LAST;

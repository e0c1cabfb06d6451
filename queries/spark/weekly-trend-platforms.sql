-- Compiled from queries/templates/weekly-trend-platforms.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
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
    CAST(TRUNC(day, 'WEEK') AS DATE) AS week,
    COALESCE(ai_source, 'unknown') AS ai_source,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits
FROM daily_categories
WHERE
    bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY
    CAST(TRUNC(day, 'WEEK') AS DATE),
    COALESCE(ai_source, 'unknown')
ORDER BY
    week NULLS LAST,
    visits DESC,
    ai_source NULLS LAST;

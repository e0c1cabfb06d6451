-- Compiled from queries/templates/ai-platform-market-share.sql by `python -m queries.compiler`; do not edit.
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
), monthly_assistant_pages AS (
    SELECT
        for_domain,
        BIT_OR(CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT)) AS days,
        ai_source,
        path
    FROM visits_to_count
    WHERE
        bot_category = 'ai_assistant' AND NOT is_malicious AND path <> ''
    GROUP BY
        for_domain,
        ai_source,
        path
), daily_assistants AS (
    SELECT
        for_domain,
        day,
        ai_source,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COUNT(visitor) AS unique_visitors
    FROM (
        SELECT
            for_domain,
            day,
            ai_source,
            visitor,
            COUNT(*) AS visits
        FROM visits_to_count
        WHERE
            bot_category = 'ai_assistant' AND NOT is_malicious
        GROUP BY
            for_domain,
            day,
            ai_source,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        ai_source
), pages AS (
    SELECT
        ai_source,
        COUNT(DISTINCT path) AS pages_accessed
    FROM monthly_assistant_pages
    GROUP BY
        ai_source
), platforms AS (
    SELECT
        ai_source,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors
    FROM daily_assistants
    GROUP BY
        ai_source
)
SELECT
    COALESCE(platforms.ai_source, 'unknown') AS ai_source,
    visits,
    CASE
        WHEN SUM(visits) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(visits AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(visits) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(visits) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    COALESCE(pages_accessed, 0) AS pages_accessed,
    unique_visitors
FROM platforms
LEFT JOIN pages
    ON pages.ai_source IS NOT DISTINCT FROM platforms.ai_source
ORDER BY
    visits DESC,
    ai_source NULLS LAST;

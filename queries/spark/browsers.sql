-- Compiled from queries/templates/browsers.sql by `python -m queries.compiler`; do not edit.
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
), daily_browsers AS (
    SELECT
        for_domain,
        day,
        browser,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COUNT(visitor) AS unique_visitors
    FROM (
        SELECT
            for_domain,
            day,
            browser,
            visitor,
            COUNT(*) AS visits,
            COUNT(*) FILTER(WHERE
                bot_category = 'human') AS human_clicks
        FROM visits_to_count
        WHERE
            bot_category IN ('human', 'ai_referral')
        GROUP BY
            for_domain,
            day,
            browser,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        browser
)
SELECT
    COALESCE(browser, 'unknown') AS browser,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
    CASE
        WHEN SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
    COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors
FROM daily_browsers
GROUP BY
    COALESCE(browser, 'unknown')
ORDER BY
    visits DESC,
    browser NULLS LAST;

-- Compiled from queries/templates/dev-tools-adoption.sql by `python -m queries.compiler`; do not edit.
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
), daily_tools AS (
    SELECT
        for_domain,
        day,
        tool,
        operator,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COUNT(visitor) AS unique_visitors,
        MIN(first_seen) AS first_seen,
        MAX(last_seen) AS last_seen
    FROM (
        SELECT
            for_domain,
            day,
            ai_source AS tool,
            operator,
            visitor,
            COUNT(*) AS visits,
            MIN(visited_at) AS first_seen,
            MAX(visited_at) AS last_seen
        FROM visits_to_count
        WHERE
            bot_category = 'ai_coding_agent'
        GROUP BY
            for_domain,
            day,
            ai_source,
            operator,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        tool,
        operator
), weeks AS (
    SELECT
        CAST(TRUNC(day, 'WEEK') AS DATE) AS week,
        COALESCE(tool, 'unknown') AS tool,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors,
        COUNT(DISTINCT day) AS active_days
    FROM daily_tools
    GROUP BY
        CAST(TRUNC(day, 'WEEK') AS DATE),
        COALESCE(tool, 'unknown')
)
SELECT
    weeks.week,
    weeks.tool,
    weeks.visits,
    weeks.unique_visitors,
    weeks.active_days,
    weeks.week = MIN(weeks.week) OVER (PARTITION BY weeks.tool) AS is_new,
    CASE
        WHEN weeks.visits >= before.visits
        THEN CASE
            WHEN before.visits > 0
            THEN CAST(CAST((
                200 * CAST(100 * CAST(weeks.visits - before.visits AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(before.visits AS DECIMAL(38, 0))
            ) DIV (
                2 * CAST(before.visits AS DECIMAL(38, 0))
            ) AS BIGINT) AS DOUBLE) / 100
        END
        ELSE 0 - CASE
            WHEN before.visits > 0
            THEN CAST(CAST((
                200 * CAST(100 * CAST(before.visits - weeks.visits AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(before.visits AS DECIMAL(38, 0))
            ) DIV (
                2 * CAST(before.visits AS DECIMAL(38, 0))
            ) AS BIGINT) AS DOUBLE) / 100
        END
    END AS change_percentage
FROM weeks
LEFT JOIN weeks AS before
    ON before.tool = weeks.tool AND before.week = CAST(weeks.week - INTERVAL '7' DAY AS DATE)
ORDER BY
    week NULLS LAST,
    visits DESC,
    tool NULLS LAST;

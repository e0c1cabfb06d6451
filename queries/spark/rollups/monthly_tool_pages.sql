-- Compiled from queries/relations/monthly_tool_pages.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), visits_by_domain AS (
    SELECT
        CAST(NULL AS STRING) AS for_domain,
        *
    FROM visits_in_days
    UNION ALL
    SELECT
        domain AS for_domain,
        *
    FROM visits_in_days
    WHERE
        NOT domain IS NULL
        AND NOT ARRAY_CONTAINS((
            SELECT
                COLLECT_LIST(day)
            FROM days_without_domains
        ), day)
), visits_to_count AS (
    SELECT
        *
    FROM visits_by_domain
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
), monthly_tool_pages AS (
    SELECT
        for_domain,
        BIT_OR(CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT)) AS days,
        ai_source AS tool,
        operator,
        path
    FROM visits_to_count
    WHERE
        bot_category = 'ai_coding_agent' AND path <> ''
    GROUP BY
        for_domain,
        ai_source,
        operator,
        path
)
SELECT
    for_domain,
    tool,
    operator,
    path,
    BIT_OR(days) AS days
FROM (
    SELECT
        *
    FROM monthly_tool_pages
)
GROUP BY
    for_domain,
    tool,
    operator,
    path;

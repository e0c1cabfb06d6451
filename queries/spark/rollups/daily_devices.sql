-- Compiled from queries/relations/daily_devices.sql by `python -m queries.compiler`; do not edit.
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
), daily_devices AS (
    SELECT
        for_domain,
        day,
        device_type,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COALESCE(CAST(SUM(ai_visits) AS BIGINT), 0) AS ai_visits,
        COUNT(visitor) AS unique_visitors
    FROM (
        SELECT
            for_domain,
            day,
            device_type,
            visitor,
            COUNT(*) AS visits,
            COUNT(*) FILTER(WHERE
                bot_category = 'human') AS human_clicks,
            COUNT(*) FILTER(WHERE
                bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai_visits
        FROM visits_to_count
        GROUP BY
            for_domain,
            day,
            device_type,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        device_type
)
SELECT
    CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT) AS days,
    *
FROM daily_devices;

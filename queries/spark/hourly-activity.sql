-- Compiled from queries/templates/hourly-activity.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH hours AS (
    SELECT
        CAST(hour AS BIGINT) AS hour
    FROM (
        SELECT
            EXPLODE(SEQUENCE(0, 23)) AS hour
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
), daily_hours AS (
    SELECT
        for_domain,
        day,
        CAST(EXTRACT(HOUR FROM visited_at) AS BIGINT) AS hour,
        bot_category,
        COUNT(*) AS visits
    FROM visits_to_count
    GROUP BY
        for_domain,
        day,
        CAST(EXTRACT(HOUR FROM visited_at) AS BIGINT),
        bot_category
)
SELECT
    hours.hour,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
    CASE
        WHEN SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category = 'human') AS BIGINT), 0) AS human_clicks,
    COALESCE(
        CAST(SUM(visits) FILTER(WHERE
            bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS BIGINT),
        0
    ) AS ai_visits,
    COALESCE(CAST(SUM(visits) FILTER(WHERE
        bot_category IN ('search_crawler', 'other_bot')) AS BIGINT), 0) AS other_visits
FROM hours
LEFT JOIN daily_hours
    ON daily_hours.hour = hours.hour
GROUP BY
    hours.hour
ORDER BY
    hour NULLS LAST;

-- Compiled from queries/templates/traffic-value-breakdown.sql by `python -m queries.compiler`; do not edit.
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
), types AS (
    SELECT
        bot_category AS traffic_type,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits
    FROM daily_categories
    GROUP BY
        bot_category
), worth AS (
    SELECT
        types.traffic_type,
        types.visits,
        ten_thousandths,
        currency,
        visits * CAST(ten_thousandths AS DECIMAL(38, 0)) AS amount
    FROM types
    JOIN traffic_values
        ON types.traffic_type = traffic_values.traffic_type
)
SELECT
    traffic_type,
    visits,
    CASE
        WHEN SUM(visits) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(visits AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(visits) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(visits) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    CAST(ten_thousandths AS DOUBLE) / 10000 AS value_per_visit,
    CASE
        WHEN 10000 > 0
        THEN CAST(CAST((
            200 * CAST(amount AS DECIMAL(38, 0)) + CAST(10000 AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(10000 AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS estimated_value,
    CASE
        WHEN SUM(amount) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(amount AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(amount) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(amount) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS value_percentage,
    currency
FROM worth
ORDER BY
    visits DESC,
    traffic_type NULLS LAST;

-- Compiled from queries/templates/peak-times.sql by `python -m queries.compiler`; do not edit.
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
), weekdays AS (
    SELECT
        weekdays.day_of_week,
        ELEMENT_AT(
            ARRAY('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'),
            CAST(weekdays.day_of_week AS INT)
        ) AS day_name,
        COUNT(day) AS days_in_range
    FROM (
        SELECT
            CAST(day_of_week AS BIGINT) AS day_of_week
        FROM (
            SELECT
                EXPLODE(SEQUENCE(1, 7)) AS day_of_week
        )
    ) AS weekdays
    LEFT JOIN days_in_scope
        ON CAST((
            PMOD(DATEDIFF(day, CAST('0001-01-01' AS DATE)), 7) + 1
        ) AS BIGINT) = weekdays.day_of_week
    GROUP BY
        weekdays.day_of_week
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
), cells AS (
    SELECT
        CAST((
            PMOD(DATEDIFF(day, CAST('0001-01-01' AS DATE)), 7) + 1
        ) AS BIGINT) AS day_of_week,
        hour,
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
        ) AS ai_visits
    FROM daily_hours
    GROUP BY
        CAST((
            PMOD(DATEDIFF(day, CAST('0001-01-01' AS DATE)), 7) + 1
        ) AS BIGINT),
        hour
)
SELECT
    CAST(ROW_NUMBER() OVER (ORDER BY visits DESC, cells.day_of_week NULLS LAST, hour NULLS LAST) AS BIGINT) AS rank,
    cells.day_of_week,
    day_name,
    hour,
    visits,
    percentage,
    CASE
        WHEN days_in_range > 0
        THEN CAST(CAST((
            200 * CAST(visits AS DECIMAL(38, 0)) + CAST(days_in_range AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(days_in_range AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS avg_visits,
    human_clicks,
    ai_visits
FROM cells
JOIN weekdays
    ON cells.day_of_week = weekdays.day_of_week
ORDER BY
    rank NULLS LAST
LIMIT 10;

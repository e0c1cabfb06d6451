-- Compiled from queries/jobs/training_without_return.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), visits_in_scope AS (
    SELECT
        *
    FROM visits_in_days
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
), daily AS (
    SELECT
        day,
        domain,
        operator,
        ai_source,
        bot_category,
        COUNT(*) AS visits,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            confidence = 'verified') AS BIGINT), 0) AS verified,
        MIN(visited_at) AS first_seen,
        MAX(visited_at) AS last_seen
    FROM visits_in_scope
    GROUP BY
        day,
        domain,
        operator,
        ai_source,
        bot_category
), domains AS (
    SELECT
        domain,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits
    FROM daily
    GROUP BY
        domain
), returned AS (
    SELECT DISTINCT
        referrals.domain,
        products.operator
    FROM (
        SELECT DISTINCT
            domain,
            ai_source
        FROM daily
        WHERE
            bot_category = 'ai_referral'
    ) AS referrals
    JOIN (
        SELECT DISTINCT
            operator,
            ai_source
        FROM daily
        WHERE
            NOT operator IS NULL
    ) AS products
        ON referrals.ai_source = products.ai_source
), crawled AS (
    SELECT
        domain,
        operator,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS training_fetches,
        COALESCE(CAST(SUM(verified) AS BIGINT), 0) AS verified,
        COUNT(DISTINCT day) AS days,
        BOOL_OR(day > CAST(:end_date AS DATE) - 7) AS is_recent,
        MIN(first_seen) AS first_seen,
        MAX(last_seen) AS last_seen
    FROM daily
    WHERE
        bot_category = 'ai_training' AND NOT operator IS NULL
    GROUP BY
        domain,
        operator
)
SELECT
    crawled.domain,
    crawled.operator,
    training_fetches,
    visits,
    CASE
        WHEN visits > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(training_fetches AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(visits AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(visits AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    verified,
    days,
    first_seen,
    last_seen
FROM crawled
JOIN domains
    ON domains.domain IS NOT DISTINCT FROM crawled.domain
LEFT ANTI JOIN returned
    ON returned.domain IS NOT DISTINCT FROM crawled.domain AND returned.operator = crawled.operator
WHERE
    training_fetches >= 100 AND 5 * training_fetches >= visits AND days >= 2 AND is_recent
ORDER BY
    training_fetches DESC,
    crawled.domain NULLS LAST,
    crawled.operator NULLS LAST
LIMIT 100;

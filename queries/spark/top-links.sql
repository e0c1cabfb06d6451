-- Compiled from queries/templates/top-links.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH links_in_scope AS (
    SELECT
        *
    FROM links
    WHERE
        organization = CAST(:organization AS STRING)
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
), daily_links AS (
    SELECT
        for_domain,
        day,
        short_code,
        domain,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COALESCE(CAST(SUM(ai_visits) AS BIGINT), 0) AS ai_visits,
        COALESCE(CAST(SUM(other_visits) AS BIGINT), 0) AS other_visits,
        COUNT(visitor) AS unique_visitors,
        MAX(last_visit) AS last_visit,
        BOOL_OR(is_answered) AS is_answered
    FROM (
        SELECT
            for_domain,
            day,
            short_code,
            domain,
            visitor,
            COUNT(*) AS visits,
            COUNT(*) FILTER(WHERE
                bot_category = 'human') AS human_clicks,
            COUNT(*) FILTER(WHERE
                bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai_visits,
            COUNT(*) FILTER(WHERE
                bot_category IN ('search_crawler', 'other_bot')) AS other_visits,
            MAX(visited_at) AS last_visit,
            BOOL_OR(COALESCE(status < 400, TRUE)) AS is_answered
        FROM visits_to_count
        GROUP BY
            for_domain,
            day,
            short_code,
            domain,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        short_code,
        domain
), by_link AS (
    SELECT
        short_code,
        domain,
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
        COALESCE(CAST(SUM(ai_visits) AS BIGINT), 0) AS ai_visits,
        COALESCE(CAST(SUM(other_visits) AS BIGINT), 0) AS other_visits,
        COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors,
        MAX(last_visit) AS last_visit,
        BOOL_OR(is_answered) AS is_answered
    FROM daily_links
    GROUP BY
        short_code,
        domain
)
SELECT
    by_link.short_code,
    COALESCE(by_link.domain, 'unknown') AS domain,
    COALESCE(own.target_url, anywhere.target_url, 'unknown') AS target_url,
    by_link.visits,
    by_link.percentage,
    by_link.human_clicks,
    by_link.ai_visits,
    by_link.other_visits,
    by_link.unique_visitors,
    by_link.last_visit
FROM by_link
LEFT JOIN links_in_scope AS own
    ON own.short_code = by_link.short_code AND own.domain = by_link.domain
LEFT JOIN links_in_scope AS anywhere
    ON anywhere.short_code = by_link.short_code AND anywhere.domain = ''
WHERE
    NOT by_link.short_code IS NULL
    AND (
        is_answered
        OR by_link.short_code IN (
            SELECT
                links.short_code
            FROM links_in_scope AS links
            WHERE
                links.domain = ''
        )
        OR (by_link.short_code, by_link.domain) IN (
            SELECT
                links.short_code,
                links.domain
            FROM links_in_scope AS links
        )
    )
ORDER BY
    visits DESC,
    short_code NULLS LAST,
    domain NULLS LAST
LIMIT 100;

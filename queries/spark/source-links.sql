-- Compiled from queries/templates/source-links.sql by `python -m queries.compiler`; do not edit.
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
), daily_link_sources AS (
    SELECT
        for_domain,
        day,
        ai_source,
        short_code,
        domain,
        COUNT(*) AS visits,
        COUNT(*) FILTER(WHERE
            bot_category = 'ai_referral') AS ai_referrals,
        COUNT(*) FILTER(WHERE
            status BETWEEN 400 AND 499) AS errors_4xx,
        COUNT(*) FILTER(WHERE
            status BETWEEN 500 AND 599) AS errors_5xx,
        MAX(visited_at) AS last_visit
    FROM visits_to_count
    WHERE
        bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
        AND NOT short_code IS NULL
    GROUP BY
        for_domain,
        day,
        ai_source,
        short_code,
        domain
), by_link AS (
    SELECT
        COALESCE(ai_source, 'unknown') AS ai_source,
        short_code,
        COALESCE(domain, 'unknown') AS domain,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(ai_referrals) AS BIGINT), 0) AS ai_referrals,
        COALESCE(CAST(SUM(errors_4xx) AS BIGINT), 0) AS errors_4xx,
        COALESCE(CAST(SUM(errors_5xx) AS BIGINT), 0) AS errors_5xx,
        MAX(last_visit) AS last_visit
    FROM daily_link_sources
    GROUP BY
        COALESCE(ai_source, 'unknown'),
        short_code,
        COALESCE(domain, 'unknown')
), ranked AS (
    SELECT
        ai_source,
        short_code,
        domain,
        visits,
        ai_referrals,
        errors_4xx,
        errors_5xx,
        last_visit,
        percentage
    FROM (
        SELECT
            *,
            CASE
                WHEN SUM(visits) OVER (PARTITION BY ai_source) > 0
                THEN CAST(CAST((
                    200 * CAST(100 * CAST(visits AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(visits) OVER (PARTITION BY ai_source) AS DECIMAL(38, 0))
                ) DIV (
                    2 * CAST(SUM(visits) OVER (PARTITION BY ai_source) AS DECIMAL(38, 0))
                ) AS BIGINT) AS DOUBLE) / 100
            END AS percentage,
            CAST(ROW_NUMBER() OVER (PARTITION BY ai_source ORDER BY visits DESC, short_code NULLS LAST, domain NULLS LAST) AS BIGINT) AS place
        FROM by_link
    )
    WHERE
        place <= 20
)
SELECT
    ai_source,
    ranked.short_code,
    ranked.domain,
    COALESCE(own.target_url, anywhere.target_url, 'unknown') AS target_url,
    visits,
    percentage,
    visits - ai_referrals AS agent_fetches,
    ai_referrals,
    errors_4xx,
    errors_5xx,
    last_visit
FROM ranked
LEFT JOIN links_in_scope AS own
    ON own.short_code = ranked.short_code AND own.domain = ranked.domain
LEFT JOIN links_in_scope AS anywhere
    ON anywhere.short_code = ranked.short_code AND anywhere.domain = ''
ORDER BY
    ai_source NULLS LAST,
    visits DESC,
    short_code NULLS LAST,
    domain NULLS LAST;

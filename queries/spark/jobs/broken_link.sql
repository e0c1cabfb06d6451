-- Compiled from queries/jobs/broken_link.sql by `python -m queries.compiler`; do not edit.
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
), links_in_scope AS (
    SELECT
        *
    FROM links
    WHERE
        organization = CAST(:organization AS STRING)
), paths AS (
    SELECT
        domain,
        path,
        MAX(short_code) AS short_code,
        MAX(visited_at) FILTER(WHERE
            COALESCE(status < 400, TRUE)) AS answered_at,
        COALESCE(
            CAST(SUM(1) FILTER(WHERE
                is_missed AND NOT (
                    bot_category = 'ai_referral'
                )) AS BIGINT),
            0
        ) AS agent_fetches,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            is_missed AND bot_category = 'ai_referral') AS BIGINT), 0) AS ai_referrals,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            is_missed AND confidence = 'verified') AS BIGINT), 0) AS verified,
        COUNT(DISTINCT day) FILTER(WHERE
            is_missed) AS days,
        MIN(visited_at) FILTER(WHERE
            is_missed) AS first_seen,
        MAX(visited_at) FILTER(WHERE
            is_missed) AS last_seen
    FROM (
        SELECT
            *,
            COALESCE(status IN (404, 410), FALSE)
            AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
            AND NOT is_malicious AS is_missed
        FROM visits_in_scope
    )
    WHERE
        path <> ''
        AND NOT (
            path IN ('/robots.txt', '/favicon.ico', '/sitemap.xml', '/llms.txt', '/ads.txt')
            OR path LIKE '/.well-known/%'
            OR path LIKE '/apple-touch-icon%'
        )
    GROUP BY
        domain,
        path
), broken AS (
    SELECT
        paths.domain,
        paths.path,
        paths.short_code,
        paths.answered_at,
        paths.agent_fetches,
        paths.ai_referrals,
        paths.verified,
        paths.days,
        paths.first_seen,
        paths.last_seen,
        ai_referrals > 0 AND answered_at IS NULL AND path <> '/' AND links.short_code IS NULL AS is_invented
    FROM paths
    LEFT JOIN (
        SELECT DISTINCT
            short_code
        FROM links_in_scope
    ) AS links
        ON links.short_code = paths.short_code
    WHERE
        days >= 2 AND agent_fetches + 10 * ai_referrals >= 10 AND COALESCE(answered_at <= last_seen, TRUE)
)
SELECT
    domain,
    path,
    short_code,
    is_invented,
    agent_fetches,
    ai_referrals,
    verified,
    days,
    first_seen,
    last_seen
FROM (
    SELECT
        domain,
        path,
        short_code,
        is_invented,
        agent_fetches,
        ai_referrals,
        verified,
        days,
        first_seen,
        last_seen,
        CAST(ROW_NUMBER() OVER (
            PARTITION BY is_invented
            ORDER BY agent_fetches + 10 * ai_referrals DESC, domain NULLS LAST, path NULLS LAST
        ) AS BIGINT) AS place
    FROM broken
)
WHERE
    place <= 100
ORDER BY
    agent_fetches + 10 * ai_referrals DESC,
    domain NULLS LAST,
    path NULLS LAST;

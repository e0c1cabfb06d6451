-- Compiled from queries/templates/ai-to-human-conversion.sql by `python -m queries.compiler`; do not edit.
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
), links_in_scope AS (
    SELECT
        *
    FROM links
    WHERE
        organization = CAST(:organization AS STRING)
), links AS (
    SELECT
        short_code,
        domain
    FROM daily_links
    GROUP BY
        short_code,
        domain
    HAVING
        NOT short_code IS NULL
        AND (
            BOOL_OR(is_answered)
            OR short_code IN (
                SELECT
                    links.short_code
                FROM links_in_scope AS links
                WHERE
                    links.domain = ''
            )
            OR (short_code, domain) IN (
                SELECT
                    links.short_code,
                    links.domain
                FROM links_in_scope AS links
            )
        )
), seen AS (
    SELECT
        COALESCE(ai_source, 'unknown') AS ai_source,
        SUM(visits) > SUM(ai_referrals) AS is_fetched,
        SUM(ai_referrals) > 0 AS is_referred
    FROM daily_link_sources AS visited
    LEFT SEMI JOIN links
        ON visited.short_code = links.short_code AND visited.domain IS NOT DISTINCT FROM links.domain
    GROUP BY
        COALESCE(ai_source, 'unknown'),
        domain,
        short_code
), by_source AS (
    SELECT
        ai_source,
        COUNT(*) FILTER(WHERE
            is_fetched) AS links_fetched,
        COUNT(*) FILTER(WHERE
            is_referred) AS links_referred
    FROM seen
    GROUP BY
        ai_source
), sources AS (
    SELECT
        COALESCE(ai_source, 'unknown') AS ai_source,
        COALESCE(CAST(SUM(visits) FILTER(WHERE
            NOT (
                bot_category = 'ai_referral'
            )) AS BIGINT), 0) AS agent_fetches,
        COALESCE(CAST(SUM(visits) FILTER(WHERE
            bot_category = 'ai_referral') AS BIGINT), 0) AS ai_referrals
    FROM daily_categories
    WHERE
        bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
    GROUP BY
        COALESCE(ai_source, 'unknown')
)
SELECT
    sources.ai_source,
    agent_fetches,
    ai_referrals,
    CASE
        WHEN agent_fetches > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(ai_referrals AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(agent_fetches AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(agent_fetches AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS conversion_rate,
    CASE
        WHEN ai_referrals > 0
        THEN CAST(CAST((
            200 * CAST(agent_fetches AS DECIMAL(38, 0)) + CAST(ai_referrals AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(ai_referrals AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS fetches_per_referral,
    COALESCE(links_fetched, 0) AS links_fetched,
    COALESCE(links_referred, 0) AS links_referred
FROM sources
LEFT JOIN by_source
    ON sources.ai_source = by_source.ai_source
ORDER BY
    agent_fetches DESC,
    ai_source NULLS LAST;

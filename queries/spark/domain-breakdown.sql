-- Compiled from queries/templates/domain-breakdown.sql by `python -m queries.compiler`; do not edit.
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
), crowded_visits AS (
    SELECT
        *
    FROM visits_in_days
    WHERE
        ARRAY_CONTAINS((
            SELECT
                COLLECT_LIST(day)
            FROM crowded_days
        ), day)
), kept AS (
    SELECT
        day,
        domain
    FROM (
        SELECT
            day,
            domain,
            CAST(ROW_NUMBER() OVER (PARTITION BY day ORDER BY COUNT(*) DESC, domain NULLS LAST) AS BIGINT) AS place
        FROM crowded_visits
        WHERE
            NOT domain IS NULL
        GROUP BY
            day,
            domain
    )
    WHERE
        place <= 10000
), visits_with_cut_domains AS (
    SELECT
        visits.for_domain,
        visits.visited_at,
        CASE
            WHEN NOT visits.domain IS NULL
            AND ARRAY_CONTAINS((
                SELECT
                    COLLECT_LIST(day)
                FROM crowded_days
            ), visits.day)
            AND kept.day IS NULL
            THEN '(other)'
            ELSE visits.domain
        END AS domain,
        visits.short_code,
        visits.path,
        visits.method,
        visits.status,
        visits.bot_category,
        visits.agent_kind,
        visits.ai_source,
        visits.agent,
        visits.operator,
        visits.confidence,
        visits.detection_method,
        visits.device_type,
        visits.operating_system,
        visits.browser,
        visits.user_agent,
        visits.country,
        visits.referrer,
        visits.referrer_type,
        visits.utm_source,
        visits.utm_medium,
        visits.utm_campaign,
        visits.utm_term,
        visits.utm_content,
        visits.visitor,
        visits.is_malicious,
        visits.rules_version,
        visits.protocol,
        visits.day,
        visits.organization
    FROM visits_to_count AS visits
    LEFT JOIN kept
        ON visits.day = kept.day AND visits.domain = kept.domain
), daily_domains AS (
    SELECT
        for_domain,
        day,
        domain,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COALESCE(CAST(SUM(ai_visits) AS BIGINT), 0) AS ai_visits,
        COALESCE(CAST(SUM(other_visits) AS BIGINT), 0) AS other_visits,
        COUNT(visitor) AS unique_visitors
    FROM (
        SELECT
            for_domain,
            day,
            domain,
            visitor,
            COUNT(*) AS visits,
            COUNT(*) FILTER(WHERE
                bot_category = 'human') AS human_clicks,
            COUNT(*) FILTER(WHERE
                bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai_visits,
            COUNT(*) FILTER(WHERE
                bot_category IN ('search_crawler', 'other_bot')) AS other_visits
        FROM visits_with_cut_domains
        GROUP BY
            for_domain,
            day,
            domain,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        domain
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
), links_in_scope AS (
    SELECT
        *
    FROM links
    WHERE
        organization = CAST(:organization AS STRING)
), found AS (
    SELECT
        domain,
        visits,
        human_clicks,
        ai_visits,
        other_visits,
        unique_visitors,
        CAST(0 AS INT) AS short_codes
    FROM daily_domains
    UNION ALL
    SELECT
        domain,
        CAST(NULL AS BIGINT) AS visits,
        CAST(NULL AS BIGINT) AS human_clicks,
        CAST(NULL AS BIGINT) AS ai_visits,
        CAST(NULL AS BIGINT) AS other_visits,
        CAST(NULL AS BIGINT) AS unique_visitors,
        CAST(1 AS INT) AS short_codes
    FROM daily_links
    GROUP BY
        domain,
        short_code
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
), domains AS (
    SELECT
        COALESCE(domain, 'unknown') AS domain,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) = 0 OR domain IS NOT DISTINCT FROM '(other)' AS is_cut,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COALESCE(CAST(SUM(ai_visits) AS BIGINT), 0) AS ai_visits,
        COALESCE(CAST(SUM(other_visits) AS BIGINT), 0) AS other_visits,
        COALESCE(CAST(SUM(short_codes) AS BIGINT), 0) AS short_codes,
        COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors
    FROM found
    GROUP BY
        domain
), listed AS (
    SELECT
        *,
        is_cut
        OR CAST(ROW_NUMBER() OVER (ORDER BY is_cut NULLS LAST, visits DESC, domain NULLS LAST) AS BIGINT) > 1000 - 1
        AND (
            COUNT(*) OVER () > 1000 OR BOOL_OR(is_cut) OVER ()
        ) AS is_rest
    FROM domains
)
SELECT
    CASE WHEN is_rest THEN '(other)' ELSE domain END AS domain,
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
    COALESCE(CAST(SUM(short_codes) AS BIGINT), 0) AS short_codes,
    COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors
FROM listed
GROUP BY
    is_rest,
    CASE WHEN is_rest THEN '(other)' ELSE domain END
ORDER BY
    is_rest NULLS LAST,
    visits DESC,
    domain NULLS LAST;

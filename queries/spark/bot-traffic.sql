-- Compiled from queries/templates/bot-traffic.sql by `python -m queries.compiler`; do not edit.
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
        agent
    FROM (
        SELECT
            day,
            agent,
            CAST(ROW_NUMBER() OVER (PARTITION BY day ORDER BY COUNT(*) DESC, agent NULLS LAST) AS BIGINT) AS place
        FROM crowded_visits
        WHERE
            NOT agent IS NULL AND NOT (
                bot_category = 'human'
            )
        GROUP BY
            day,
            agent
    )
    WHERE
        place <= 10000
), visits_with_cut_agents AS (
    SELECT
        visits.for_domain,
        visits.visited_at,
        visits.domain,
        visits.short_code,
        visits.path,
        visits.method,
        visits.status,
        visits.bot_category,
        visits.agent_kind,
        visits.ai_source,
        CASE
            WHEN NOT visits.agent IS NULL
            AND ARRAY_CONTAINS((
                SELECT
                    COLLECT_LIST(day)
                FROM crowded_days
            ), visits.day)
            AND kept.day IS NULL
            THEN '(other)'
            ELSE visits.agent
        END AS agent,
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
        ON visits.day = kept.day AND visits.agent = kept.agent
), daily_agents AS (
    SELECT
        for_domain,
        day,
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COUNT(visitor) AS unique_visitors,
        COALESCE(CAST(SUM(errors_4xx) AS BIGINT), 0) AS errors_4xx,
        COALESCE(CAST(SUM(errors_5xx) AS BIGINT), 0) AS errors_5xx,
        MIN(first_seen) AS first_seen,
        MAX(last_seen) AS last_seen
    FROM (
        SELECT
            for_domain,
            day,
            agent,
            operator,
            agent_kind,
            bot_category,
            confidence,
            visitor,
            COUNT(*) AS visits,
            COUNT(*) FILTER(WHERE
                status BETWEEN 400 AND 499) AS errors_4xx,
            COUNT(*) FILTER(WHERE
                status BETWEEN 500 AND 599) AS errors_5xx,
            MIN(visited_at) AS first_seen,
            MAX(visited_at) AS last_seen
        FROM visits_with_cut_agents
        WHERE
            NOT (
                bot_category = 'human'
            )
        GROUP BY
            for_domain,
            day,
            agent,
            operator,
            agent_kind,
            bot_category,
            confidence,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence
), monthly_agent_pages AS (
    SELECT
        for_domain,
        BIT_OR(CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT)) AS days,
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence,
        path
    FROM visits_to_count
    WHERE
        NOT (
            bot_category = 'human'
        ) AND path <> ''
    GROUP BY
        for_domain,
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence,
        path
), found AS (
    SELECT
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence,
        visits,
        unique_visitors,
        errors_4xx,
        errors_5xx,
        first_seen,
        last_seen,
        CAST(0 AS BIGINT) AS pages
    FROM daily_agents
    UNION ALL
    SELECT
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence,
        CAST(NULL AS BIGINT) AS visits,
        CAST(NULL AS BIGINT) AS unique_visitors,
        CAST(NULL AS BIGINT) AS errors_4xx,
        CAST(NULL AS BIGINT) AS errors_5xx,
        CAST(NULL AS TIMESTAMP_NTZ) AS first_seen,
        CAST(NULL AS TIMESTAMP_NTZ) AS last_seen,
        COUNT(DISTINCT path) AS pages
    FROM monthly_agent_pages
    GROUP BY
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence
), agents AS (
    SELECT
        COALESCE(agent, 'unknown') AS agent,
        COALESCE(operator, 'unknown') AS operator,
        COALESCE(agent_kind, 'unknown') AS agent_kind,
        bot_category,
        COALESCE(confidence, 'unknown') AS confidence,
        agent IS NOT DISTINCT FROM '(other)' OR COALESCE(CAST(SUM(visits) AS BIGINT), 0) = 0 AS is_cut,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(pages) AS BIGINT), 0) AS pages,
        COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors,
        COALESCE(CAST(SUM(errors_4xx) AS BIGINT), 0) AS errors_4xx,
        COALESCE(CAST(SUM(errors_5xx) AS BIGINT), 0) AS errors_5xx,
        MIN(first_seen) AS first_seen,
        MAX(last_seen) AS last_seen
    FROM found
    WHERE
        NOT (
            bot_category = 'ai_referral'
        ) OR NOT CAST(:traffic_type AS STRING) IS NULL
    GROUP BY
        found.agent,
        found.operator,
        found.agent_kind,
        found.bot_category,
        found.confidence
), listed AS (
    SELECT
        *,
        is_cut
        OR CAST(ROW_NUMBER() OVER (
            ORDER BY is_cut NULLS LAST, visits DESC, agent NULLS LAST, operator NULLS LAST, agent_kind NULLS LAST, bot_category NULLS LAST, confidence NULLS LAST
        ) AS BIGINT) > 1000 - 6
        AND (
            COUNT(*) OVER () > 1000 OR BOOL_OR(is_cut) OVER ()
        ) AS is_rest
    FROM agents
)
SELECT
    CASE WHEN is_rest THEN '(other)' ELSE agent END AS agent,
    CASE WHEN is_rest THEN '(other)' ELSE operator END AS operator,
    CASE WHEN is_rest THEN '(other)' ELSE agent_kind END AS agent_kind,
    bot_category,
    CASE WHEN is_rest THEN '(other)' ELSE confidence END AS confidence,
    COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
    CASE
        WHEN SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () > 0
        THEN CAST(CAST((
            200 * CAST(100 * CAST(COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) + CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) DIV (
            2 * CAST(SUM(COALESCE(CAST(SUM(visits) AS BIGINT), 0)) OVER () AS DECIMAL(38, 0))
        ) AS BIGINT) AS DOUBLE) / 100
    END AS percentage,
    COALESCE(CAST(SUM(pages) AS BIGINT), 0) AS pages_accessed,
    COALESCE(CAST(SUM(unique_visitors) AS BIGINT), 0) AS unique_visitors,
    COALESCE(CAST(SUM(errors_4xx) AS BIGINT), 0) AS errors_4xx,
    COALESCE(CAST(SUM(errors_5xx) AS BIGINT), 0) AS errors_5xx,
    MIN(first_seen) AS first_seen,
    MAX(last_seen) AS last_seen
FROM listed
GROUP BY
    is_rest,
    CASE WHEN is_rest THEN '(other)' ELSE agent END,
    CASE WHEN is_rest THEN '(other)' ELSE operator END,
    CASE WHEN is_rest THEN '(other)' ELSE agent_kind END,
    bot_category,
    CASE WHEN is_rest THEN '(other)' ELSE confidence END
ORDER BY
    is_rest NULLS LAST,
    visits DESC,
    agent NULLS LAST,
    operator NULLS LAST,
    agent_kind NULLS LAST,
    bot_category NULLS LAST,
    confidence NULLS LAST;

-- Compiled from queries/relations/daily_agents.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), visits_by_domain AS (
    SELECT
        CAST(NULL AS STRING) AS for_domain,
        *
    FROM visits_in_days
    UNION ALL
    SELECT
        domain AS for_domain,
        *
    FROM visits_in_days
    WHERE
        NOT domain IS NULL
        AND NOT ARRAY_CONTAINS((
            SELECT
                COLLECT_LIST(day)
            FROM days_without_domains
        ), day)
), visits_to_count AS (
    SELECT
        *
    FROM visits_by_domain
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
)
SELECT
    CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT) AS days,
    *
FROM daily_agents;

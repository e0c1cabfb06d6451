-- Compiled from queries/relations/daily_referrers.sql by `python -m queries.compiler`; do not edit.
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
        referrer
    FROM (
        SELECT
            day,
            referrer,
            CAST(ROW_NUMBER() OVER (PARTITION BY day ORDER BY COUNT(*) DESC, referrer NULLS LAST) AS BIGINT) AS place
        FROM crowded_visits
        WHERE
            NOT referrer IS NULL AND bot_category IN ('human', 'ai_referral')
        GROUP BY
            day,
            referrer
    )
    WHERE
        place <= 10000
), visits_with_cut_referrers AS (
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
        visits.agent,
        visits.operator,
        visits.confidence,
        visits.detection_method,
        visits.device_type,
        visits.operating_system,
        visits.browser,
        visits.user_agent,
        visits.country,
        CASE
            WHEN NOT visits.referrer IS NULL
            AND ARRAY_CONTAINS((
                SELECT
                    COLLECT_LIST(day)
                FROM crowded_days
            ), visits.day)
            AND kept.day IS NULL
            THEN '(other)'
            ELSE visits.referrer
        END AS referrer,
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
        ON visits.day = kept.day AND visits.referrer = kept.referrer
), daily_referrers AS (
    SELECT
        for_domain,
        day,
        referrer,
        referrer_type,
        COUNT(*) AS visits,
        COUNT(*) FILTER(WHERE
            bot_category = 'human') AS human_clicks,
        COUNT(*) FILTER(WHERE
            bot_category = 'ai_referral') AS ai_referrals
    FROM visits_with_cut_referrers
    WHERE
        bot_category IN ('human', 'ai_referral')
    GROUP BY
        for_domain,
        day,
        referrer,
        referrer_type
)
SELECT
    CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT) AS days,
    *
FROM daily_referrers;

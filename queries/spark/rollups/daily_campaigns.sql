-- Compiled from queries/relations/daily_campaigns.sql by `python -m queries.compiler`; do not edit.
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
        campaign_1,
        campaign_2,
        campaign_3
    FROM (
        SELECT
            day,
            utm_source AS campaign_1,
            utm_medium AS campaign_2,
            utm_campaign AS campaign_3,
            CAST(ROW_NUMBER() OVER (
                PARTITION BY day
                ORDER BY COUNT(*) DESC, utm_source NULLS LAST, utm_medium NULLS LAST, utm_campaign NULLS LAST
            ) AS BIGINT) AS place
        FROM crowded_visits
        WHERE
            NOT COALESCE(utm_source, utm_medium, utm_campaign) IS NULL
        GROUP BY
            day,
            utm_source,
            utm_medium,
            utm_campaign
    )
    WHERE
        place <= 10000
), marked AS (
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
        visits.organization,
        NOT COALESCE(utm_source, utm_medium, utm_campaign) IS NULL
        AND ARRAY_CONTAINS((
            SELECT
                COLLECT_LIST(day)
            FROM crowded_days
        ), visits.day)
        AND kept.day IS NULL AS is_cut
    FROM visits_to_count AS visits
    LEFT JOIN kept
        ON kept.day = visits.day
        AND kept.campaign_1 IS NOT DISTINCT FROM utm_source
        AND kept.campaign_2 IS NOT DISTINCT FROM utm_medium
        AND kept.campaign_3 IS NOT DISTINCT FROM utm_campaign
), visits_with_cut_campaigns AS (
    SELECT
        for_domain,
        visited_at,
        domain,
        short_code,
        path,
        method,
        status,
        bot_category,
        agent_kind,
        ai_source,
        agent,
        operator,
        confidence,
        detection_method,
        device_type,
        operating_system,
        browser,
        user_agent,
        country,
        referrer,
        referrer_type,
        CASE WHEN is_cut THEN '(other)' ELSE utm_source END AS utm_source,
        CASE WHEN is_cut THEN '(other)' ELSE utm_medium END AS utm_medium,
        CASE WHEN is_cut THEN '(other)' ELSE utm_campaign END AS utm_campaign,
        utm_term,
        utm_content,
        visitor,
        is_malicious,
        rules_version,
        protocol,
        day,
        organization,
        is_cut
    FROM marked
), daily_campaigns AS (
    SELECT
        for_domain,
        day,
        utm_source,
        utm_medium,
        utm_campaign,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        COALESCE(CAST(SUM(human_clicks) AS BIGINT), 0) AS human_clicks,
        COALESCE(CAST(SUM(ai_visits) AS BIGINT), 0) AS ai_visits,
        COUNT(visitor) AS unique_visitors
    FROM (
        SELECT
            for_domain,
            day,
            utm_source,
            utm_medium,
            utm_campaign,
            visitor,
            COUNT(*) AS visits,
            COUNT(*) FILTER(WHERE
                bot_category = 'human') AS human_clicks,
            COUNT(*) FILTER(WHERE
                bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai_visits
        FROM visits_with_cut_campaigns
        WHERE
            NOT COALESCE(utm_source, utm_medium, utm_campaign, utm_term, utm_content) IS NULL
        GROUP BY
            for_domain,
            day,
            utm_source,
            utm_medium,
            utm_campaign,
            visitor
    )
    GROUP BY
        for_domain,
        day,
        utm_source,
        utm_medium,
        utm_campaign
)
SELECT
    CAST(SHIFTLEFT(1, CAST(EXTRACT(DAY FROM day) - 1 AS INT)) AS INT) AS days,
    *
FROM daily_campaigns;

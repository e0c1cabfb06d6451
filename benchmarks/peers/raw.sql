-- DuckDB directly over the same Parquet files, as an analyst would query them who has only these files.

-- name: visits
SELECT * EXCLUDE (disguised) REPLACE (
    CASE WHEN disguised THEN 'other_bot' ELSE bot_category END AS bot_category,
    CASE WHEN disguised THEN 'disguised' ELSE agent_kind END AS agent_kind,
    CASE WHEN disguised THEN NULL ELSE ai_source END AS ai_source,
    CASE WHEN disguised THEN NULL ELSE agent END AS agent,
    CASE WHEN disguised THEN NULL ELSE operator END AS operator,
    CASE WHEN disguised THEN 'medium' ELSE confidence END AS confidence,
    CASE WHEN disguised THEN 'behaviour' ELSE detection_method END AS detection_method,
    CASE WHEN disguised THEN 'bot' ELSE device_type END AS device_type
)
FROM (
    SELECT *, coalesce(bot_category IN ('human', 'ai_referral') AND signals & [convicting] <> 0, FALSE) AS disguised FROM files
);

-- name: traffic-overview
SELECT
    count(*) AS total,
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    count(*) FILTER (bot_category = 'ai_assistant'),
    count(*) FILTER (bot_category = 'ai_training'),
    count(*) FILTER (bot_category = 'ai_coding_agent'),
    count(*) FILTER (bot_category = 'ai_referral'),
    count(*) FILTER (bot_category IN ('search_crawler', 'other_bot')),
    (20000 * ai + total) // (2 * total) / 100
FROM visits WHERE [scope];

-- name: time-series
SELECT
    day,
    count(*),
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(*) FILTER (device_type = 'mobile'),
    count(*) FILTER (device_type = 'desktop')
FROM visits WHERE [scope] GROUP BY day ORDER BY day;

-- name: ai-sources
SELECT
    coalesce(ai_source, 'unknown') AS source,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category <> 'ai_referral'),
    count(*) FILTER (bot_category = 'ai_referral')
FROM visits
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY source ORDER BY visits DESC, source;

-- name: devices
SELECT
    device_type,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(DISTINCT visitor)
FROM visits WHERE [scope] GROUP BY device_type ORDER BY visits DESC, device_type;

-- name: top-links
SELECT * FROM (
    SELECT
        short_code,
        domain,
        count(*) AS visits,
        (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
        count(*) FILTER (bot_category = 'human'),
        count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
        count(*) FILTER (bot_category IN ('search_crawler', 'other_bot')),
        count(DISTINCT visitor),
        max(visited_at)
    FROM visits WHERE [scope] GROUP BY short_code, domain
) WHERE short_code IS NOT NULL ORDER BY visits DESC, short_code, domain LIMIT 100;

-- name: weekly-trend-weeks
SELECT
    CAST(date_trunc('week', day) AS DATE) AS week,
    count(*) AS total,
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    count(*) FILTER (bot_category = 'ai_assistant'),
    count(*) FILTER (bot_category = 'ai_training'),
    count(*) FILTER (bot_category = 'ai_coding_agent'),
    count(*) FILTER (bot_category = 'ai_referral'),
    count(*) FILTER (bot_category IN ('search_crawler', 'other_bot')),
    (20000 * ai + total) // (2 * total) / 100
FROM visits WHERE [scope] GROUP BY week ORDER BY week;

-- name: weekly-trend-platforms
SELECT
    CAST(date_trunc('week', day) AS DATE) AS week,
    coalesce(ai_source, 'unknown') AS source,
    count(*) AS visits
FROM visits
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY week, source ORDER BY week, visits DESC, source;

-- name: ai-platform-market-share
SELECT
    coalesce(ai_source, 'unknown') AS source,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(DISTINCT path) FILTER (path <> ''),
    count(DISTINCT visitor)
FROM visits WHERE [scope] AND bot_category = 'ai_assistant' AND NOT is_malicious
GROUP BY source ORDER BY visits DESC, source;

-- name: referrers
SELECT
    coalesce(referrer, '(direct)') AS place,
    referrer_type,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category = 'ai_referral')
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral')
GROUP BY place, referrer_type ORDER BY visits DESC, place, referrer_type;

-- name: geographic
SELECT
    coalesce(country, 'unknown') AS place,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(DISTINCT visitor)
FROM visits WHERE [scope] GROUP BY place ORDER BY visits DESC, place;

-- name: browsers
SELECT
    coalesce(browser, 'unknown') AS name,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category = 'human'),
    count(DISTINCT visitor)
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral') GROUP BY name ORDER BY visits DESC, name;

-- name: operating-systems
SELECT
    coalesce(operating_system, 'unknown') AS name,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category = 'human'),
    count(DISTINCT visitor)
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral') GROUP BY name ORDER BY visits DESC, name;

-- name: hourly-activity
SELECT
    hour(visited_at) AS hour,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(*) FILTER (bot_category = 'human'),
    count(*) FILTER (bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(*) FILTER (bot_category IN ('search_crawler', 'other_bot'))
FROM visits WHERE [scope] GROUP BY hour ORDER BY hour;

-- name: bot-traffic
SELECT
    coalesce(agent, 'unknown') AS name,
    coalesce(operator, 'unknown') AS owner,
    coalesce(agent_kind, 'unknown') AS kind,
    bot_category,
    coalesce(confidence, 'unknown') AS sure,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) // (2 * sum(count(*)) OVER ()) / 100,
    count(DISTINCT path) FILTER (path <> ''),
    count(DISTINCT visitor),
    count(*) FILTER (status BETWEEN 400 AND 499),
    count(*) FILTER (status BETWEEN 500 AND 599),
    min(visited_at),
    max(visited_at)
FROM visits WHERE [scope] AND bot_category NOT IN ('human', 'ai_referral')
GROUP BY name, owner, kind, bot_category, sure ORDER BY visits DESC, name, owner, kind, bot_category, sure;

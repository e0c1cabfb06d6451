-- SQLite: one table with the indexes that such tools have: by time, by link, and by the most frequent groups.

-- name: visits
CREATE TABLE visits (
    organization TEXT, day TEXT, visited_at INTEGER, domain TEXT, short_code TEXT, path TEXT, method TEXT,
    status INTEGER, bot_category TEXT, agent_kind TEXT, ai_source TEXT, agent TEXT, operator TEXT, confidence TEXT,
    detection_method TEXT, device_type TEXT, operating_system TEXT, browser TEXT, user_agent TEXT, country TEXT,
    referrer TEXT, referrer_type TEXT, utm_source TEXT, utm_medium TEXT, utm_campaign TEXT, utm_term TEXT,
    utm_content TEXT, visitor INTEGER, is_malicious INTEGER, rules_version TEXT
);

-- name: indexes
CREATE INDEX by_time ON visits (organization, visited_at);
CREATE INDEX by_day ON visits (organization, day);
CREATE INDEX by_link ON visits (organization, short_code, day);
CREATE INDEX by_visitor ON visits (organization, visitor, day);
CREATE INDEX by_referrer ON visits (organization, day, referrer);
CREATE INDEX by_country ON visits (organization, day, country);
CREATE INDEX by_path ON visits (organization, day, path);

-- name: traffic-overview
SELECT
    count(*) AS total,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    count(*) FILTER (WHERE bot_category = 'ai_assistant'),
    count(*) FILTER (WHERE bot_category = 'ai_training'),
    count(*) FILTER (WHERE bot_category = 'ai_coding_agent'),
    count(*) FILTER (WHERE bot_category = 'ai_referral'),
    count(*) FILTER (WHERE bot_category IN ('search_crawler', 'other_bot')),
    (20000 * count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) + count(*)) / (2 * count(*)) / 100.0
FROM visits WHERE [scope];

-- name: time-series
SELECT
    day,
    count(*),
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(*) FILTER (WHERE device_type = 'mobile'),
    count(*) FILTER (WHERE device_type = 'desktop')
FROM visits WHERE [scope] GROUP BY day ORDER BY day;

-- name: ai-sources
SELECT
    coalesce(ai_source, 'unknown') AS source,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category <> 'ai_referral'),
    count(*) FILTER (WHERE bot_category = 'ai_referral')
FROM visits
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY source ORDER BY visits DESC, source;

-- name: devices
SELECT
    device_type,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(DISTINCT visitor)
FROM visits WHERE [scope] GROUP BY device_type ORDER BY visits DESC, device_type;

-- name: top-links
SELECT * FROM (
    SELECT
        short_code,
        domain,
        count(*) AS visits,
        (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
        count(*) FILTER (WHERE bot_category = 'human'),
        count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
        count(*) FILTER (WHERE bot_category IN ('search_crawler', 'other_bot')),
        count(DISTINCT visitor),
        datetime(max(visited_at), 'unixepoch')
    FROM visits WHERE [scope] GROUP BY short_code, domain
) WHERE short_code IS NOT NULL ORDER BY visits DESC, short_code, domain LIMIT 100;

-- name: weekly-trend-weeks
SELECT
    date(day, '-6 days', 'weekday 1') AS week,
    count(*) AS total,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    count(*) FILTER (WHERE bot_category = 'ai_assistant'),
    count(*) FILTER (WHERE bot_category = 'ai_training'),
    count(*) FILTER (WHERE bot_category = 'ai_coding_agent'),
    count(*) FILTER (WHERE bot_category = 'ai_referral'),
    count(*) FILTER (WHERE bot_category IN ('search_crawler', 'other_bot')),
    (20000 * count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) + count(*)) / (2 * count(*)) / 100.0
FROM visits WHERE [scope] GROUP BY week ORDER BY week;

-- name: weekly-trend-platforms
SELECT
    date(day, '-6 days', 'weekday 1') AS week,
    coalesce(ai_source, 'unknown') AS source,
    count(*) AS visits
FROM visits
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY week, source ORDER BY week, visits DESC, source;

-- name: ai-platform-market-share
SELECT
    coalesce(ai_source, 'unknown') AS source,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(DISTINCT path) FILTER (WHERE path <> ''),
    count(DISTINCT visitor)
FROM visits WHERE [scope] AND bot_category = 'ai_assistant' AND NOT is_malicious
GROUP BY source ORDER BY visits DESC, source;

-- name: referrers
SELECT
    coalesce(referrer, '(direct)') AS place,
    referrer_type,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category = 'ai_referral')
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral')
GROUP BY place, referrer_type ORDER BY visits DESC, place, referrer_type;

-- name: geographic
SELECT
    coalesce(country, 'unknown') AS place,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(DISTINCT visitor)
FROM visits WHERE [scope] GROUP BY place ORDER BY visits DESC, place;

-- name: browsers
SELECT
    coalesce(browser, 'unknown') AS name,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(DISTINCT visitor)
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral') GROUP BY name ORDER BY visits DESC, name;

-- name: operating-systems
SELECT
    coalesce(operating_system, 'unknown') AS name,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(DISTINCT visitor)
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral') GROUP BY name ORDER BY visits DESC, name;

-- name: hourly-activity
SELECT
    visited_at / 3600 % 24 AS hour,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(*) FILTER (WHERE bot_category = 'human'),
    count(*) FILTER (WHERE bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    count(*) FILTER (WHERE bot_category IN ('search_crawler', 'other_bot'))
FROM visits WHERE [scope] GROUP BY hour ORDER BY hour;

-- name: bot-traffic
SELECT
    coalesce(agent, 'unknown') AS name,
    coalesce(operator, 'unknown') AS owner,
    coalesce(agent_kind, 'unknown') AS kind,
    bot_category,
    coalesce(confidence, 'unknown') AS sure,
    count(*) AS visits,
    (20000 * count(*) + sum(count(*)) OVER ()) / (2 * sum(count(*)) OVER ()) / 100.0,
    count(DISTINCT path) FILTER (WHERE path <> ''),
    count(DISTINCT visitor),
    count(*) FILTER (WHERE status BETWEEN 400 AND 499),
    count(*) FILTER (WHERE status BETWEEN 500 AND 599),
    datetime(min(visited_at), 'unixepoch'),
    datetime(max(visited_at), 'unixepoch')
FROM visits WHERE [scope] AND bot_category NOT IN ('human', 'ai_referral')
GROUP BY name, owner, kind, bot_category, sure ORDER BY visits DESC, name, owner, kind, bot_category, sure;

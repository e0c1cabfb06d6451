-- ClickHouse: one MergeTree table, sorted for whole organizations and for single links of some days.
-- '' stands for missing values. Percentages are rounded half up in whole numbers, as ours are.

-- name: visits
CREATE TABLE visits (
    organization LowCardinality(String),
    day Date,
    visited_at DateTime,
    domain LowCardinality(String),
    short_code LowCardinality(String),
    path String,
    method LowCardinality(String),
    status UInt16,
    bot_category LowCardinality(String),
    agent_kind LowCardinality(String),
    ai_source LowCardinality(String),
    agent LowCardinality(String),
    operator LowCardinality(String),
    confidence LowCardinality(String),
    detection_method LowCardinality(String),
    device_type LowCardinality(String),
    operating_system LowCardinality(String),
    browser LowCardinality(String),
    user_agent String,
    country LowCardinality(String),
    referrer LowCardinality(String),
    referrer_type LowCardinality(String),
    utm_source LowCardinality(String),
    utm_medium LowCardinality(String),
    utm_campaign LowCardinality(String),
    utm_term LowCardinality(String),
    utm_content LowCardinality(String),
    visitor Int64,
    is_malicious Bool,
    rules_version LowCardinality(String)
) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (organization, day, short_code, visited_at);

-- name: load
INSERT INTO visits
WITH ifNull(bot_category IN ('human', 'ai_referral') AND bitAnd(signals, [convicting]) != 0, false) AS disguised
SELECT
    organization, day, visited_at, ifNull(domain, ''), ifNull(short_code, ''), ifNull(path, ''), ifNull(method, ''),
    ifNull(status, 0), if(disguised, 'other_bot', ifNull(bot_category, '')),
    if(disguised, 'disguised', ifNull(agent_kind, '')), if(disguised, '', ifNull(ai_source, '')),
    if(disguised, '', ifNull(agent, '')), if(disguised, '', ifNull(operator, '')),
    if(disguised, 'medium', ifNull(confidence, '')), if(disguised, 'behaviour', ifNull(detection_method, '')),
    if(disguised, 'bot', ifNull(device_type, '')), ifNull(operating_system, ''), ifNull(browser, ''),
    ifNull(user_agent, ''), ifNull(country, ''), ifNull(referrer, ''), ifNull(referrer_type, ''),
    ifNull(utm_source, ''), ifNull(utm_medium, ''), ifNull(utm_campaign, ''), ifNull(utm_term, ''),
    ifNull(utm_content, ''), assumeNotNull(visitor), ifNull(is_malicious, false), ifNull(rules_version, '')
FROM file('[files]', Parquet);

-- name: traffic-overview
SELECT
    count() AS total,
    countIf(bot_category = 'human'),
    countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    countIf(bot_category = 'ai_assistant'),
    countIf(bot_category = 'ai_training'),
    countIf(bot_category = 'ai_coding_agent'),
    countIf(bot_category = 'ai_referral'),
    countIf(bot_category IN ('search_crawler', 'other_bot')),
    intDiv(20000 * ai + total, 2 * total) / 100
FROM visits WHERE [scope];

-- name: time-series
SELECT
    day,
    count(),
    countIf(bot_category = 'human'),
    countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    countIf(device_type = 'mobile'),
    countIf(device_type = 'desktop')
FROM visits WHERE [scope] GROUP BY day ORDER BY day;

-- name: ai-sources
SELECT
    if(ai_source = '', 'unknown', ai_source) AS source,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category != 'ai_referral'),
    countIf(bot_category = 'ai_referral')
FROM visits
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY source ORDER BY visits DESC, source;

-- name: devices
SELECT
    device_type,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category = 'human'),
    countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    uniqExact(visitor)
FROM visits WHERE [scope] GROUP BY device_type ORDER BY visits DESC, device_type;

-- name: top-links
SELECT * FROM (
    SELECT
        short_code,
        domain,
        count() AS visits,
        intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
        countIf(bot_category = 'human'),
        countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
        countIf(bot_category IN ('search_crawler', 'other_bot')),
        uniqExact(visitor),
        max(visited_at)
    FROM visits WHERE [scope] GROUP BY short_code, domain
) WHERE short_code != '' ORDER BY visits DESC, short_code, domain LIMIT 100;

-- name: weekly-trend-weeks
SELECT
    toMonday(day) AS week,
    count() AS total,
    countIf(bot_category = 'human'),
    countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    countIf(bot_category = 'ai_assistant'),
    countIf(bot_category = 'ai_training'),
    countIf(bot_category = 'ai_coding_agent'),
    countIf(bot_category = 'ai_referral'),
    countIf(bot_category IN ('search_crawler', 'other_bot')),
    intDiv(20000 * ai + total, 2 * total) / 100
FROM visits WHERE [scope] GROUP BY week ORDER BY week;

-- name: weekly-trend-platforms
SELECT toMonday(day) AS week, if(ai_source = '', 'unknown', ai_source) AS source, count() AS visits
FROM visits
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY week, source ORDER BY week, visits DESC, source;

-- name: ai-platform-market-share
SELECT
    if(ai_source = '', 'unknown', ai_source) AS source,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    uniqExactIf(path, path != ''),
    uniqExact(visitor)
FROM visits WHERE [scope] AND bot_category = 'ai_assistant' AND NOT is_malicious
GROUP BY source ORDER BY visits DESC, source;

-- name: referrers
SELECT
    if(referrer = '', '(direct)', referrer) AS from,
    referrer_type,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category = 'human'),
    countIf(bot_category = 'ai_referral')
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral')
GROUP BY from, referrer_type ORDER BY visits DESC, from, referrer_type;

-- name: geographic
SELECT
    if(country = '', 'unknown', country) AS place,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category = 'human'),
    countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    uniqExact(visitor)
FROM visits WHERE [scope] GROUP BY place ORDER BY visits DESC, place;

-- name: browsers
SELECT
    if(browser = '', 'unknown', browser) AS name,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category = 'human'),
    uniqExact(visitor)
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral') GROUP BY name ORDER BY visits DESC, name;

-- name: operating-systems
SELECT
    if(operating_system = '', 'unknown', operating_system) AS name,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category = 'human'),
    uniqExact(visitor)
FROM visits WHERE [scope] AND bot_category IN ('human', 'ai_referral') GROUP BY name ORDER BY visits DESC, name;

-- name: hourly-activity
SELECT
    toHour(visited_at) AS hour,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    countIf(bot_category = 'human'),
    countIf(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    countIf(bot_category IN ('search_crawler', 'other_bot'))
FROM visits WHERE [scope] GROUP BY hour ORDER BY hour;

-- name: bot-traffic
SELECT
    if(agent = '', 'unknown', agent) AS name,
    if(operator = '', 'unknown', operator) AS owner,
    if(agent_kind = '', 'unknown', agent_kind) AS kind,
    bot_category,
    if(confidence = '', 'unknown', confidence) AS sure,
    count() AS visits,
    intDiv(20000 * visits + sum(visits) OVER (), 2 * sum(visits) OVER ()) / 100,
    uniqExactIf(path, path != ''),
    uniqExact(visitor),
    countIf(status BETWEEN 400 AND 499),
    countIf(status BETWEEN 500 AND 599),
    min(visited_at),
    max(visited_at)
FROM visits WHERE [scope] AND bot_category NOT IN ('human', 'ai_referral')
GROUP BY name, owner, kind, bot_category, sure ORDER BY visits DESC, name, owner, kind, bot_category, sure;

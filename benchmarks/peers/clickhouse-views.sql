-- ClickHouse with materialised views: what each member needs, by organization and day, kept as rows land.
-- [visitors of] and [visitors] stand for how visitors are kept and how they are counted, [pages of] and [pages] likewise.

-- name: table categories
CREATE TABLE categories ENGINE = AggregatingMergeTree
ORDER BY (organization, day, bot_category, ai_source, device_type) AS
SELECT organization, day, bot_category, ai_source, device_type, sumSimpleState(toUInt64(1)) AS visits
FROM visits GROUP BY organization, day, bot_category, ai_source, device_type;

-- name: table hours
CREATE TABLE hours ENGINE = AggregatingMergeTree ORDER BY (organization, day, hour, bot_category) AS
SELECT organization, day, toHour(visited_at) AS hour, bot_category, sumSimpleState(toUInt64(1)) AS visits
FROM visits GROUP BY organization, day, hour, bot_category;

-- name: table devices
CREATE TABLE devices ENGINE = AggregatingMergeTree ORDER BY (organization, day, device_type) AS
SELECT
    organization,
    day,
    device_type,
    sumSimpleState(toUInt64(1)) AS visits,
    sumSimpleState(toUInt64(bot_category = 'human')) AS human,
    sumSimpleState(toUInt64(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral'))) AS ai,
    [visitors of] AS visitors
FROM visits GROUP BY organization, day, device_type;

-- name: table countries
CREATE TABLE countries ENGINE = AggregatingMergeTree ORDER BY (organization, day, country) AS
SELECT
    organization,
    day,
    country,
    sumSimpleState(toUInt64(1)) AS visits,
    sumSimpleState(toUInt64(bot_category = 'human')) AS human,
    sumSimpleState(toUInt64(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral'))) AS ai,
    [visitors of] AS visitors
FROM visits GROUP BY organization, day, country;

-- name: table browsers
CREATE TABLE browsers ENGINE = AggregatingMergeTree ORDER BY (organization, day, browser) AS
SELECT
    organization,
    day,
    browser,
    sumSimpleState(toUInt64(1)) AS visits,
    sumSimpleState(toUInt64(bot_category = 'human')) AS human,
    [visitors of] AS visitors
FROM visits WHERE bot_category IN ('human', 'ai_referral') GROUP BY organization, day, browser;

-- name: table operating_systems
CREATE TABLE operating_systems ENGINE = AggregatingMergeTree ORDER BY (organization, day, operating_system) AS
SELECT
    organization,
    day,
    operating_system,
    sumSimpleState(toUInt64(1)) AS visits,
    sumSimpleState(toUInt64(bot_category = 'human')) AS human,
    [visitors of] AS visitors
FROM visits WHERE bot_category IN ('human', 'ai_referral') GROUP BY organization, day, operating_system;

-- name: table referrers
CREATE TABLE referrers ENGINE = AggregatingMergeTree ORDER BY (organization, day, referrer, referrer_type) AS
SELECT
    organization,
    day,
    referrer,
    referrer_type,
    sumSimpleState(toUInt64(1)) AS visits,
    sumSimpleState(toUInt64(bot_category = 'human')) AS human
FROM visits WHERE bot_category IN ('human', 'ai_referral') GROUP BY organization, day, referrer, referrer_type;

-- name: table links
CREATE TABLE links ENGINE = AggregatingMergeTree ORDER BY (organization, day, short_code, domain) AS
SELECT
    organization,
    day,
    short_code,
    domain,
    sumSimpleState(toUInt64(1)) AS visits,
    sumSimpleState(toUInt64(bot_category = 'human')) AS human,
    sumSimpleState(toUInt64(bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral'))) AS ai,
    [visitors of] AS visitors,
    maxSimpleState(visited_at) AS latest
FROM visits GROUP BY organization, day, short_code, domain;

-- name: table assistants
CREATE TABLE assistants ENGINE = AggregatingMergeTree ORDER BY (organization, day, ai_source) AS
SELECT
    organization,
    day,
    ai_source,
    sumSimpleState(toUInt64(1)) AS visits,
    [visitors of] AS visitors,
    [pages of] AS pages
FROM visits WHERE bot_category = 'ai_assistant' AND NOT is_malicious GROUP BY organization, day, ai_source;

-- name: table agents
CREATE TABLE agents ENGINE = AggregatingMergeTree
ORDER BY (organization, day, agent, operator, agent_kind, bot_category, confidence) AS
SELECT
    organization,
    day,
    agent,
    operator,
    agent_kind,
    bot_category,
    confidence,
    sumSimpleState(toUInt64(1)) AS visits,
    [visitors of] AS visitors,
    [pages of] AS pages,
    sumSimpleState(toUInt64(status BETWEEN 400 AND 499)) AS errors_4xx,
    sumSimpleState(toUInt64(status BETWEEN 500 AND 599)) AS errors_5xx,
    minSimpleState(visited_at) AS earliest,
    maxSimpleState(visited_at) AS latest
FROM visits WHERE bot_category NOT IN ('human', 'ai_referral')
GROUP BY organization, day, agent, operator, agent_kind, bot_category, confidence;

-- name: traffic-overview
SELECT
    sum(visits) AS total,
    sumIf(visits, bot_category = 'human'),
    sumIf(visits, bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    sumIf(visits, bot_category = 'ai_assistant'),
    sumIf(visits, bot_category = 'ai_training'),
    sumIf(visits, bot_category = 'ai_coding_agent'),
    sumIf(visits, bot_category = 'ai_referral'),
    sumIf(visits, bot_category IN ('search_crawler', 'other_bot')),
    intDiv(20000 * ai + total, 2 * total) / 100
FROM categories WHERE [scope];

-- name: time-series
SELECT
    day,
    sum(visits),
    sumIf(visits, bot_category = 'human'),
    sumIf(visits, bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    sumIf(visits, device_type = 'mobile'),
    sumIf(visits, device_type = 'desktop')
FROM categories WHERE [scope] GROUP BY day ORDER BY day;

-- name: ai-sources
SELECT
    if(ai_source = '', 'unknown', ai_source) AS source,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sumIf(visits, bot_category != 'ai_referral'),
    sumIf(visits, bot_category = 'ai_referral')
FROM categories
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY source ORDER BY count DESC, source;

-- name: devices
SELECT
    device_type,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sum(human),
    sum(ai),
    [visitors]
FROM devices WHERE [scope] GROUP BY device_type ORDER BY count DESC, device_type;

-- name: top-links
SELECT * FROM (
    SELECT
        short_code,
        domain,
        sum(visits) AS count,
        intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
        sum(human) AS people,
        sum(ai) AS automata,
        count - people - automata,
        [visitors],
        max(latest)
    FROM links WHERE [scope] GROUP BY short_code, domain
) WHERE short_code != '' ORDER BY count DESC, short_code, domain LIMIT 100;

-- name: weekly-trend-weeks
SELECT
    toMonday(day) AS week,
    sum(visits) AS total,
    sumIf(visits, bot_category = 'human'),
    sumIf(visits, bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')) AS ai,
    sumIf(visits, bot_category = 'ai_assistant'),
    sumIf(visits, bot_category = 'ai_training'),
    sumIf(visits, bot_category = 'ai_coding_agent'),
    sumIf(visits, bot_category = 'ai_referral'),
    sumIf(visits, bot_category IN ('search_crawler', 'other_bot')),
    intDiv(20000 * ai + total, 2 * total) / 100
FROM categories WHERE [scope] GROUP BY week ORDER BY week;

-- name: weekly-trend-platforms
SELECT toMonday(day) AS week, if(ai_source = '', 'unknown', ai_source) AS source, sum(visits) AS count
FROM categories
WHERE [scope] AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
GROUP BY week, source ORDER BY week, count DESC, source;

-- name: ai-platform-market-share
SELECT
    if(ai_source = '', 'unknown', ai_source) AS source,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    [pages],
    [visitors]
FROM assistants WHERE [scope] GROUP BY source ORDER BY count DESC, source;

-- name: referrers
SELECT
    if(referrer = '', '(direct)', referrer) AS from,
    referrer_type,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sum(human) AS people,
    count - people
FROM referrers WHERE [scope] GROUP BY from, referrer_type ORDER BY count DESC, from, referrer_type;

-- name: geographic
SELECT
    if(country = '', 'unknown', country) AS place,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sum(human),
    sum(ai),
    [visitors]
FROM countries WHERE [scope] GROUP BY place ORDER BY count DESC, place;

-- name: browsers
SELECT
    if(browser = '', 'unknown', browser) AS name,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sum(human),
    [visitors]
FROM browsers WHERE [scope] GROUP BY name ORDER BY count DESC, name;

-- name: operating-systems
SELECT
    if(operating_system = '', 'unknown', operating_system) AS name,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sum(human),
    [visitors]
FROM operating_systems WHERE [scope] GROUP BY name ORDER BY count DESC, name;

-- name: hourly-activity
SELECT
    hour,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    sumIf(visits, bot_category = 'human'),
    sumIf(visits, bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')),
    sumIf(visits, bot_category IN ('search_crawler', 'other_bot'))
FROM hours WHERE [scope] GROUP BY hour ORDER BY hour;

-- name: bot-traffic
SELECT
    if(agent = '', 'unknown', agent) AS name,
    if(operator = '', 'unknown', operator) AS owner,
    if(agent_kind = '', 'unknown', agent_kind) AS kind,
    bot_category,
    if(confidence = '', 'unknown', confidence) AS sure,
    sum(visits) AS count,
    intDiv(20000 * count + sum(count) OVER (), 2 * sum(count) OVER ()) / 100,
    [pages],
    [visitors],
    sum(errors_4xx),
    sum(errors_5xx),
    min(earliest),
    max(latest)
FROM agents WHERE [scope]
GROUP BY name, owner, kind, bot_category, sure ORDER BY count DESC, name, owner, kind, bot_category, sure;

-- Umami 3.1 on PostgreSQL: its two tables of visits with the columns and indexes that they have, and what its queries
-- count, in words of ours. https://github.com/umami-software/umami/blob/v3.1.0/prisma/schema.prisma and, in
-- https://github.com/umami-software/umami/tree/v3.1.0/src/queries/sql: getWebsiteStats, pageviews/getPageviewStats,
-- pageviews/getPageviewExpandedMetrics, sessions/getSessionMetrics.

-- name: tables
CREATE TABLE website_event (
    event_id UUID PRIMARY KEY, website_id UUID NOT NULL, session_id UUID NOT NULL, created_at TIMESTAMPTZ DEFAULT now(),
    url_path VARCHAR(500) NOT NULL, url_query VARCHAR(500), referrer_path VARCHAR(500), referrer_query VARCHAR(500),
    referrer_domain VARCHAR(500), page_title VARCHAR(500), event_type INTEGER NOT NULL DEFAULT 1,
    event_name VARCHAR(50), visit_id UUID NOT NULL, tag VARCHAR(50), fbclid VARCHAR(255), gclid VARCHAR(255),
    li_fat_id VARCHAR(255), msclkid VARCHAR(255), ttclid VARCHAR(255), twclid VARCHAR(255), utm_campaign VARCHAR(255),
    utm_content VARCHAR(255), utm_medium VARCHAR(255), utm_source VARCHAR(255), utm_term VARCHAR(255),
    hostname VARCHAR(100), cls DECIMAL(10, 4), fcp DECIMAL(10, 1), inp DECIMAL(10, 1), lcp DECIMAL(10, 1),
    ttfb DECIMAL(10, 1)
);
CREATE TABLE session (
    session_id UUID PRIMARY KEY, website_id UUID NOT NULL, browser VARCHAR(20), os VARCHAR(20), device VARCHAR(20),
    screen VARCHAR(11), language VARCHAR(35), country CHAR(2), region VARCHAR(20), city VARCHAR(50),
    created_at TIMESTAMPTZ DEFAULT now(), distinct_id VARCHAR(50)
);

-- name: indexes
CREATE INDEX ON website_event (created_at);
CREATE INDEX ON website_event (session_id);
CREATE INDEX ON website_event (visit_id);
CREATE INDEX ON website_event (website_id);
CREATE INDEX ON website_event (website_id, created_at);
CREATE INDEX ON website_event (website_id, created_at, url_path);
CREATE INDEX ON website_event (website_id, created_at, url_query);
CREATE INDEX ON website_event (website_id, created_at, referrer_domain);
CREATE INDEX ON website_event (website_id, created_at, page_title);
CREATE INDEX ON website_event (website_id, created_at, event_name);
CREATE INDEX ON website_event (website_id, created_at, tag);
CREATE INDEX ON website_event (website_id, created_at, hostname);
CREATE INDEX ON website_event (website_id, session_id, created_at);
CREATE INDEX ON website_event (website_id, visit_id, created_at);
CREATE INDEX ON session (created_at);
CREATE INDEX ON session (website_id);
CREATE INDEX ON session (website_id, created_at);
CREATE INDEX ON session (website_id, created_at, browser);
CREATE INDEX ON session (website_id, created_at, os);
CREATE INDEX ON session (website_id, created_at, device);
CREATE INDEX ON session (website_id, created_at, screen);
CREATE INDEX ON session (website_id, created_at, language);
CREATE INDEX ON session (website_id, created_at, country);
CREATE INDEX ON session (website_id, created_at, region);
CREATE INDEX ON session (website_id, created_at, city);

-- name: website_event
SELECT
    uuid() AS event_id, md5(organization)::UUID AS website_id, md5(visitor::VARCHAR)::UUID AS session_id,
    visited_at AS created_at, left(coalesce(path, ''), 500) AS url_path,
    CASE WHEN bot_category IN ('human', 'ai_referral') THEN referrer END AS referrer_domain,
    md5(concat_ws(' ', visitor, date_trunc('hour', visited_at)))::UUID AS visit_id,
    utm_campaign, utm_content, utm_medium, utm_source, utm_term, domain AS hostname
FROM visits ORDER BY visited_at;

-- name: session
SELECT
    md5(visitor::VARCHAR)::UUID AS session_id, md5(organization)::UUID AS website_id,
    any_value(browser) FILTER (is_person) AS browser, any_value(operating_system) FILTER (is_person) AS os,
    any_value(device_type) FILTER (is_person) AS device, any_value(country) AS country, min(visited_at) AS created_at
FROM (SELECT *, bot_category IN ('human', 'ai_referral') AS is_person FROM visits)
GROUP BY organization, visitor ORDER BY created_at;

-- name: totals
SELECT
    sum(pageviews), count(DISTINCT session_id), count(DISTINCT visit_id), count(*) FILTER (WHERE pageviews = 1),
    sum(seconds)
FROM (
    SELECT
        session_id, visit_id, count(*) AS pageviews,
        floor(extract(EPOCH FROM max(created_at) - min(created_at))) AS seconds
    FROM website_event WHERE [scope] GROUP BY session_id, visit_id
) AS seen;

-- name: days
SELECT to_char(date_trunc('day', created_at), 'YYYY-MM-DD') AS day, count(*)
FROM website_event WHERE [scope] GROUP BY day ORDER BY day;

-- name: pages
SELECT
    name, sum(pageviews), count(DISTINCT session_id) AS visitors, count(DISTINCT visit_id) AS visits,
    count(*) FILTER (WHERE pageviews = 1), sum(seconds)
FROM (
    SELECT
        [column] AS name, session_id, visit_id, count(*) AS pageviews,
        floor(extract(EPOCH FROM max(created_at) - min(created_at))) AS seconds
    FROM website_event WHERE [scope] GROUP BY [column], session_id, visit_id
) AS seen
WHERE name <> '' GROUP BY name ORDER BY visitors DESC, visits DESC LIMIT 500;

-- name: sessions
SELECT [column] AS name, count(DISTINCT website_event.session_id) AS visitors
FROM website_event JOIN session USING (session_id, website_id)
WHERE [scope] AND [column] <> '' GROUP BY name ORDER BY visitors DESC LIMIT 500;

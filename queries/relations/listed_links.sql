-- Every link, with or without visits in scope. If it has none and works on all domains, its domain is (any).
CREATE VIEW listed_links AS
WITH known AS (
    SELECT * FROM links_in_scope
    WHERE (getvariable('short_code') IS NULL OR short_code = getvariable('short_code'))
        AND (getvariable('domain') IS NULL OR domain IN ('', getvariable('domain')))
        AND is_tagged(short_code, domain)
), counted AS (
    SELECT
        short_code, domain, total(visits) AS visits, total(human_clicks) AS human_clicks,
        total(ai_visits) AS ai_visits, total(other_visits) AS other_visits,
        total(unique_visitors) AS unique_visitors, total(people_visitors) AS people_visitors,
        max(last_visit) AS last_visit, bool_or(is_answered) AS is_answered
    FROM daily_links WHERE short_code IS NOT NULL GROUP BY short_code, domain
), visited AS (
    SELECT counted.*, coalesce(own.domain, '') AS link_domain
    FROM counted
    LEFT JOIN known AS own
        ON own.short_code = counted.short_code AND own.domain = counted.domain AND own.domain <> ''
    WHERE visits > 0
)
SELECT
    coalesce(visited.short_code, known.short_code) AS short_code,
    CASE WHEN visits > 0 THEN coalesce(visited.domain, 'unknown')
        WHEN known.domain = '' THEN '(any)' ELSE known.domain END AS domain,
    coalesce(target_url, 'unknown') AS target_url, created_at, coalesce(tags, []) AS tags, coalesce(visits, 0) AS visits,
    coalesce(human_clicks, 0) AS human_clicks, coalesce(ai_visits, 0) AS ai_visits,
    coalesce(other_visits, 0) AS other_visits, coalesce(unique_visitors, 0) AS unique_visitors,
    coalesce(people_visitors, 0) AS people_visitors, last_visit
FROM visited
FULL JOIN known ON known.short_code = visited.short_code AND known.domain = visited.link_domain
WHERE known.short_code IS NOT NULL OR is_answered;

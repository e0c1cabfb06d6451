-- The 100 links with the most requests. A link is in the links file, or was answered with a status below 400 at least once.
-- The percentage is of all requests in scope, to links or not.
WITH by_link AS (
    SELECT
        short_code,
        domain,
        total(visits) AS visits,
        share(total(visits), sum(total(visits)) OVER ()) AS percentage,
        total(human_clicks) AS human_clicks,
        total(ai_visits) AS ai_visits,
        total(other_visits) AS other_visits,
        total(unique_visitors) AS unique_visitors,
        max(last_visit) AS last_visit,
        bool_or(is_answered) AS is_answered
    FROM daily_links GROUP BY short_code, domain
), requested AS MATERIALIZED (
    SELECT short_code, domain, target_url FROM links_in_scope WHERE short_code IN (SELECT short_code FROM by_link)
)
SELECT
    by_link.short_code,
    coalesce(by_link.domain, 'unknown') AS domain,
    coalesce(own.target_url, anywhere.target_url, 'unknown') AS target_url,
    by_link.* EXCLUDE (short_code, domain, is_answered)
FROM by_link
LEFT JOIN requested AS own ON own.short_code = by_link.short_code AND own.domain = by_link.domain
LEFT JOIN requested AS anywhere ON anywhere.short_code = by_link.short_code AND anywhere.domain = ''
WHERE by_link.short_code IS NOT NULL AND visits > 0
    AND (is_answered OR own.short_code IS NOT NULL OR anywhere.short_code IS NOT NULL)
ORDER BY visits DESC, short_code, domain
LIMIT 100;

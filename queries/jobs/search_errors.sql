-- Domains on which search crawlers get 500 to 599: at least 10 times, on at least 3 days, in at least 1 % of their
-- visits, and still in the last 7 days if they came then. Search engines crawl such sites less often, and drop pages
-- that keep failing. A domain is left out if server_errors finds its home page, so that the whole site is down, or
-- the paths of at least half of these errors.
WITH whole AS (
    SELECT
        domain, count(*) AS visits, total_if(1, is_recent) AS recent_visits,
        total_if(1, is_recent AND kind = 'search_errors') AS recent_errors
    FROM path_requests WHERE audience = 'search' GROUP BY domain
), crawled AS (
    SELECT domain, path, errors, sum(errors) OVER (PARTITION BY domain) AS of_domain
    FROM (SELECT domain, template_of(path, short_code) AS path, count(*) AS errors
        FROM path_requests WHERE kind = 'search_errors' GROUP BY ALL)
), erring AS (
    SELECT domain, path FROM erring_paths WHERE is_erring
), known AS (
    SELECT domain FROM erring WHERE path = '/'
    UNION ALL
    SELECT crawled.domain FROM crawled JOIN erring ON erring.domain IS NOT DISTINCT FROM crawled.domain AND erring.path = crawled.path
    GROUP BY crawled.domain, of_domain HAVING 2 * total(errors) >= of_domain
)
SELECT
    errors.domain, whole.visits, errors.failures AS errors, share(errors.failures, whole.visits) AS percentage,
    errors.audience, errors.visitors, errors.top_agent, errors.top_share, errors.top_paths, errors.days, errors.first_seen,
    errors.last_seen
FROM shared('failing_paths') AS errors JOIN whole ON whole.domain IS NOT DISTINCT FROM errors.domain
LEFT JOIN (SELECT DISTINCT domain, TRUE AS is_known FROM known) AS known ON known.domain IS NOT DISTINCT FROM errors.domain
WHERE errors.kind = 'search_errors' AND meets('fewer than 10 errors', errors.failures >= 10)
    AND meets('errors on fewer than 3 days', errors.days >= 3)
    AND meets('errors for less than 1 % of the visits', 100 * errors.failures >= whole.visits)
    AND meets('errors for less than 1 % of the visits in the last 7 days', 100 * whole.recent_errors >= whole.recent_visits)
    AND meets('found by server_errors', is_known IS NULL)
ORDER BY errors DESC, domain
LIMIT 100;

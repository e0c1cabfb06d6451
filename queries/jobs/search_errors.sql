-- Domains on which search crawlers get 500 to 599: at least 10 times, on at least 3 days, in at least 1 % of their
-- visits, and still in the last 7 days if they came then. Search engines crawl such sites less often, and drop pages
-- that keep failing.
WITH whole AS (
    SELECT
        domain, count(*) AS visits, total_if(1, is_recent) AS recent_visits,
        total_if(1, is_recent AND kind = 'search_errors') AS recent_errors
    FROM path_requests WHERE audience = 'search' GROUP BY domain
)
SELECT
    errors.domain, whole.visits, errors.failures AS errors, share(errors.failures, whole.visits) AS percentage,
    errors.audience, errors.visitors, errors.top_agent, errors.top_share, errors.top_paths, errors.days, errors.first_seen,
    errors.last_seen
FROM shared('failing_paths') AS errors JOIN whole ON whole.domain IS NOT DISTINCT FROM errors.domain
WHERE errors.kind = 'search_errors' AND is_found(
    errors.failures >= 10 AND errors.days >= 3 AND 100 * errors.failures >= whole.visits
    AND 100 * whole.recent_errors >= whole.recent_visits)
ORDER BY errors DESC, domain
LIMIT 100;

-- Paths, with ids in them as *, on which people or AI products get 500 to 599: at least 20 times, on at least 2 days,
-- in at least 5 % of their visits, and still in the last 7 days if they came then. The requests of a single browser or
-- visitor are a flood.
WITH whole AS (
    SELECT
        domain, template, count(*) AS visits, total_if(1, is_recent) AS recent_visits,
        total_if(1, is_recent AND kind = 'server_errors') AS recent_errors
    FROM path_requests WHERE audience <> 'search' GROUP BY domain, template
)
SELECT
    errors.domain, errors.path, errors.short_code, whole.visits, errors.failures AS errors,
    share(errors.failures, whole.visits) AS percentage, errors.people, errors.audience, errors.visitors,
    errors.top_agent, errors.top_share, errors.top_paths, errors.days, errors.first_seen, errors.last_seen
FROM shared('failing_paths') AS errors
JOIN whole ON whole.domain IS NOT DISTINCT FROM errors.domain AND whole.template = errors.path
WHERE errors.kind = 'server_errors' AND is_found(
    errors.failures >= 20 AND errors.days >= 2 AND 20 * errors.failures >= whole.visits
    AND 20 * whole.recent_errors >= whole.recent_visits AND NOT errors.is_flood)
ORDER BY errors DESC, domain, path
LIMIT 100;

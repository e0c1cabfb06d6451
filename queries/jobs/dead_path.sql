-- Missing paths, with ids in them as *, that people request: 404 or 410 for at least 10 requests by at least 5
-- visitors, on at least 3 days, for at least half of their requests, also in the last 7 days. A quarter of them
-- followed a link, on a page of the site or elsewhere. The requests of a single browser or visitor are a flood. Requests
-- for a path that people got since are not in that half: something that comes and goes is not a broken link.
WITH requests AS (
    SELECT
        domain, template, path, count(*) AS visits, total_if(1, is_recent) AS recent_visits,
        total_if(1, is_recent AND kind = 'dead_path') AS recent_missing,
        CASE WHEN max(visited_at) FILTER (is_answered(status)) > max(visited_at) FILTER (kind = 'dead_path')
            THEN 0 ELSE total_if(1, kind = 'dead_path') END AS missing
    FROM path_requests WHERE audience = 'people' GROUP BY domain, template, path
), whole AS (
    SELECT
        domain, template, total(visits) AS visits, total(recent_visits) AS recent_visits,
        total(recent_missing) AS recent_missing, total(missing) AS missing
    FROM requests GROUP BY domain, template
)
SELECT
    dead.domain, dead.path, dead.short_code, whole.visits, dead.failures AS missing,
    share(dead.failures, whole.visits) AS percentage, dead.referred, dead.audience, dead.visitors, dead.top_agent,
    dead.top_share, dead.top_paths, dead.days, dead.first_seen, dead.last_seen
FROM shared('failing_paths') AS dead
JOIN whole ON whole.domain IS NOT DISTINCT FROM dead.domain AND whole.template = dead.path
WHERE dead.kind = 'dead_path' AND meets('missing for fewer than 10 requests', dead.failures >= 10)
    AND meets('requested by fewer than 5 visitors', dead.visitors >= 5)
    AND meets('missing on fewer than 3 days', dead.days >= 3)
    AND meets('less than half of the requests are for paths that stayed missing', 2 * whole.missing >= whole.visits)
    AND meets('missing for less than half of the requests in the last 7 days', 2 * whole.recent_missing >= whole.recent_visits)
    AND meets('less than a quarter followed a link', 4 * dead.referred >= dead.failures)
    AND meets('a flood by one browser or visitor', NOT dead.is_flood)
ORDER BY missing DESC, domain, path
LIMIT 100;

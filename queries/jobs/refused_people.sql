-- Paths, with ids in them as *, that refuse people: 403, 429 or 499 (they gave up waiting) for at least 20 requests by
-- at least 5 visitors, also in the last 7 days, and for half of the requests of the days with refusals, or of such days
-- among the last 7 unless all is 499. Only visitors who got a page of the domain on that day (200 to 299 or 304) count:
-- machines that are refused everything do not. Server errors for a tenth of these requests are another cause. Logins,
-- admin areas, floods and files that programs request from every host are left out.
WITH asked AS (
    SELECT
        domain, template, path, short_code, day, is_recent, visitor, agent, name, status, count(*) AS requests,
        min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM path_requests
    WHERE audience = 'people' AND NOT (is_asked_of_every_host(path) OR is_login(path) OR is_admin(path)) GROUP BY ALL
), served AS (
    SELECT DISTINCT domain, day, visitor FROM asked WHERE is_success(status) OR status = 304
), counted AS (
    SELECT *, sum(refused) OVER (PARTITION BY domain, template, day) AS of_day FROM (
        SELECT asked.*, CASE WHEN refuses_people(status) THEN requests ELSE 0 END AS refused
        FROM asked JOIN served ON served.domain IS NOT DISTINCT FROM asked.domain
            AND served.day = asked.day AND served.visitor = asked.visitor)
), whole AS (
    SELECT domain, template, total(requests) AS visits, total_if(requests, is_recent) AS recent_visits,
        total_if(refused, is_recent) AS recent, total_if(requests, status BETWEEN 500 AND 599) AS errors
    FROM counted WHERE of_day > 0 GROUP BY domain, template
)
SELECT refusals.domain, refusals.template AS path, max(short_code) AS short_code, visits, total(refused) AS refused,
    share(total(refused), visits) AS percentage, array_to_string(list_sort(list(DISTINCT status) FILTER (refused > 0)),
    ', ') AS statuses, 'people' AS audience, count(DISTINCT visitor) AS visitors, top_of(of_name, name) AS top_agent,
    share(max(of_name), total(refused)) AS top_share, three_of(ranked(of_path, path)) AS top_paths,
    count(DISTINCT day) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (SELECT *, sum(refused) OVER (PARTITION BY domain, template, name) AS of_name,
    sum(refused) OVER (PARTITION BY domain, template, path) AS of_path,
    sum(refused) OVER (PARTITION BY domain, template, visitor) AS of_visitor FROM counted WHERE refused > 0) AS refusals
JOIN whole ON whole.domain IS NOT DISTINCT FROM refusals.domain AND whole.template = refusals.template
GROUP BY refusals.domain, refusals.template, visits, recent_visits, recent, errors
HAVING meets('fewer than 20 requests', total(refused) >= 20)
    AND meets('fewer than 5 visitors', count(DISTINCT visitor) >= 5)
    AND meets('not in the last 7 days', recent > 0) AND meets('server errors for a tenth', 10 * errors < visits)
    AND meets('less than half of the requests', 2 * total(refused) >= visits OR 2 * recent >= recent_visits)
    AND meets('given up for less than half of the requests', min(status) < 499 OR 2 * total(refused) >= visits)
    AND meets('a flood by one browser or visitor', NOT is_flood(total(refused), of_name, agent, of_visitor, visitor))
ORDER BY refused DESC, domain, path LIMIT 100;

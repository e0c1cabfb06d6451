-- robots.txt or sitemap.xml that search and AI crawlers request and never get: at least 10 requests on at least 5 days
-- and on half of the days with crawlers, also in the last 7 days, none of them answered 200 to 299 or 304, and at least
-- half 404 or 410. Redirects are left out: another request follows them.
WITH crawled AS (
    SELECT
        domain, path, status, name_of(agent, user_agent) AS name, bot_category = 'search_crawler' AS is_search, visitor, day,
        count(*) AS requests, min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM detected_visits()
    WHERE (bot_category = 'search_crawler' OR is_ai(bot_category) AND NOT is_person(bot_category)) AND path <> ''
        AND is_evidence(is_malicious, confidence, signals)
    GROUP BY ALL
), whole AS (
    SELECT domain, count(DISTINCT day) AS days FROM crawled GROUP BY domain
)
SELECT
    asked.domain, path, total(requests) AS visits,
    CASE WHEN 2 * total_if(requests, NOT is_search) >= total(requests) THEN 'AI' ELSE 'search' END AS audience,
    count(DISTINCT visitor) AS visitors, top_of(of_name, name) AS top_agent, share(max(of_name), total(requests)) AS top_share,
    count(DISTINCT day) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (
    SELECT *, sum(requests) OVER (PARTITION BY domain, path, name) AS of_name FROM crawled
    WHERE path IN ('/robots.txt', '/sitemap.xml') AND NOT is_redirected(status)
) AS asked JOIN whole ON whole.domain IS NOT DISTINCT FROM asked.domain
GROUP BY asked.domain, path, whole.days
HAVING meets('answered', total_if(requests, is_success(status) OR status = 304) = 0)
    AND meets('requested fewer than 10 times', total(requests) >= 10)
    AND meets('requested on fewer than 5 days', count(DISTINCT day) >= 5)
    AND meets('requested on less than half of the days with crawlers', 2 * count(DISTINCT day) >= whole.days)
    AND meets('not requested in the last 7 days', is_in_last_days(max(day), 7))
    AND meets('404 or 410 for less than half of the requests', 2 * total_if(requests, is_not_found(status)) >= total(requests))
ORDER BY visits DESC, domain, path
LIMIT 100;

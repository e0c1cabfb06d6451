-- Domains on which search and AI crawlers get what only the people in charge should: pages of an admin area, or
-- addresses that delete or sign out, answered 200 to 299 for at least 5 requests and 2 paths, also in the last 7 days.
-- Files, pages to sign in and HEAD do not count, nor do answers as large as the home page. Answers of one size are a
-- catch-all or a page to sign in. Coding agents are left out: their developers sign them in.
WITH asked AS (
    SELECT
        domain, path, path = '/' AS is_home, bytes_sent AS size, name_of(agent, user_agent) AS name,
        bot_category = 'search_crawler' AS is_search, visitor, day, count(*) AS requests, min(visited_at) AS first_seen,
        max(visited_at) AS last_seen
    FROM detected_visits()
    WHERE bot_category IN ('search_crawler', 'ai_training', 'ai_assistant')
        AND is_evidence(is_malicious, confidence, signals) AND is_success(status) AND bytes_sent IS NOT NULL
        AND coalesce(method <> 'HEAD', TRUE) AND NOT is_file AND (path = '/' OR is_inside(path))
    GROUP BY ALL
), alike AS (
    SELECT DISTINCT pages.domain, pages.size, TRUE AS is_alike
    FROM (SELECT DISTINCT domain, size FROM asked WHERE NOT is_home) AS pages
    JOIN (SELECT DISTINCT domain, size FROM asked WHERE is_home) AS homes
        ON homes.domain IS NOT DISTINCT FROM pages.domain AND is_like_size(pages.size, homes.size)
), inside AS (
    SELECT asked.*, sum(requests) OVER (PARTITION BY asked.domain, name) AS of_name,
        sum(requests) OVER (PARTITION BY asked.domain, path) AS of_path
    FROM asked LEFT JOIN alike ON alike.domain IS NOT DISTINCT FROM asked.domain AND alike.size = asked.size
    WHERE NOT is_home AND meets('as large as the home page', is_alike IS NULL)
)
SELECT
    domain, total(requests) AS answered, count(DISTINCT path) AS paths,
    CASE WHEN 2 * total_if(requests, NOT is_search) >= total(requests) THEN 'AI' ELSE 'search' END AS audience,
    count(DISTINCT visitor) AS visitors, top_of(of_name, name) AS top_agent,
    share(max(of_name), total(requests)) AS top_share, three_of(ranked(of_path, path)) AS top_paths,
    count(DISTINCT day) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM inside GROUP BY domain
HAVING meets('fewer than 5 requests', total(requests) >= 5) AND meets('one path only', count(DISTINCT path) >= 2)
    AND meets('answers of one size', NOT is_like_size(min(size), max(size)))
    AND meets('not in the last 7 days', is_in_last_days(max(day), 7))
ORDER BY answered DESC, domain LIMIT 100;

-- The drawn visits as lines of a log in the combined format, ordered by time.
SELECT
    format(
        '{} - - [{}] "GET {}{} HTTP/1.1" {} 0 "{}" "{}"', ip, strftime(visited_at, '%d/%b/%Y:%H:%M:%S +0000'), path,
        CASE WHEN query = '' THEN '' ELSE '?' || query END, status, referer, user_agent
    ) AS line
FROM drawn
JOIN agents ON agents.number = caller
JOIN origins ON origins.number = origin
ORDER BY visited_at, a, b

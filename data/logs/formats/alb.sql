-- AWS Application Load Balancer: type time elb client:port target:port 3 durations status ... "request" "user agent"
-- It names no referrer. The host stands in the request, which is absolute.
SELECT
    number,
    bytes,
    lower(regexp_extract(parts[2], '^\S+ [a-z]+://(\[[^\]]*\]|[^:/?# ]*)', 1)) AS domain,
    regexp_replace(regexp_replace(words[4], ':\d+$', ''), '[\[\]]', '', 'g') AS ip,
    moment(words[2]) AS visited_at,
    unshielded(parts[2]) AS request,
    status_of(words[9]) AS status,
    '' AS referrer,
    dash_as_empty(unshielded(parts[4])) AS user_agent,
    '' AS country,
    len(parts) >= 5 AND len(words) = 13 AND starts_with(words[3], 'app/') AS is_whole,
    '' AS flaw,
    FALSE AS is_mended
FROM (SELECT *, string_split(parts[1], ' ') AS words FROM (
    SELECT number, strlen(line) AS bytes, quoted_parts(line) AS parts FROM lines))

-- AWS Application Load Balancer: type time elb client:port target:port 3 durations status ... "request" "user agent"
-- There is no referrer. The host is in the request's target, which is an absolute URL.
-- Example: https 2026-03-04T10:05:03.000000Z app/lb/50dc 203.0.113.7:2817 10.0.0.1:80 0.086 0.048 0.037 302 200 0 5316 "GET https://go.example.com:443/abc HTTP/1.1" "Mozilla/5.0 (X11)" ECDHE TLSv1.2 arn:x "Root=1" "-" "-"
SELECT
    number,
    bytes,
    regexp_extract(parts[2], '^\S+ [a-z]+://(\[[^\]]*\]|[^:/?# ]*)', 1) AS domain,
    address_of(words[4]) AS ip,
    '' AS forwarded,
    parse_time(words[2]) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(words[9]) AS status,
    words[12] AS bytes_sent,
    '' AS referrer,
    dash_as_empty(restore_escapes(parts[4])) AS user_agent,
    '' AS country,
    words[1] AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    len(parts) >= 5 AND len(words) = 13 AND starts_with(words[3], 'app/') AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, string_split(head, ' ') AS words FROM quoted_lines('lines'))

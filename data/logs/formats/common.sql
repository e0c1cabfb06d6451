-- The Common Log Format: address ident user [time] "request" status bytes. There is no user agent.
-- Example: 203.0.113.7 - - [04/Mar/2026:10:05:03 +0000] "GET /abc HTTP/1.1" 302 5316
SELECT
    number,
    bytes,
    '' AS domain,
    leading_addresses(head, first, second) AS ip,
    '' AS forwarded,
    bracketed_time(head, words) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_after(after_request) AS status,
    split_part(after_request, ' ', 3) AS bytes_sent,
    '' AS referrer,
    '' AS user_agent,
    '' AS country,
    CAST(NULL AS VARCHAR) AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    len(parts) = 3 AND NOT names_a_host(head, first, second) AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM quoted_lines('lines')

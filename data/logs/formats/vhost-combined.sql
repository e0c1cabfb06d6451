-- Apache's "vhost_combined": host:port address ident user [time] "request" status bytes "referrer" "user agent"
-- Example: go.example.com:443 203.0.113.7 - - [04/Mar/2026:10:05:03 +0000] "GET /abc HTTP/1.1" 302 5316 "https://t.co/" "Mozilla/5.0 (X11)"
SELECT
    number,
    bytes,
    first AS domain,
    leading_addresses(substring(head, length(first) + 2), second, words[3]) AS ip,
    forwarded_after(parts) AS forwarded,
    bracketed_time(head, words) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_after(after_request) AS status,
    split_part(after_request, ' ', 3) AS bytes_sent,
    referrer,
    user_agent,
    country_after(parts) AS country,
    CAST(NULL AS VARCHAR) AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    len(parts) >= 6 AND names_a_host(head, first, second) AS is_complete,
    '' AS reject_reason,
    len(parts) = 6 AS is_repaired
FROM quoted_lines('lines')

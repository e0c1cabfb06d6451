-- Apache's "vhost_combined": host:port address ident user [time] "request" status bytes "referrer" "user agent"
SELECT
    number,
    bytes,
    split_part(parts[1], ' ', 1) AS domain,
    split_part(parts[1], ' ', 2) AS ip,
    bracketed_time(parts[1]) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_after(parts[3]) AS status,
    dash_as_empty(restore_escapes(parts[4])) AS referrer,
    dash_as_empty(restore_escapes(parts[6])) AS user_agent,
    country_after(parts) AS country,
    len(parts) >= 6 AND names_a_host(parts[1]) AS is_complete,
    '' AS reject_reason,
    len(parts) = 6 AS is_repaired
FROM (
    SELECT number, strlen(line) AS bytes, quoted_parts(line) AS parts,
        split_request(restore_escapes(parts[2])) AS request
    FROM lines
)

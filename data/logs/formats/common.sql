-- The "common" log of many servers: address ident user [time] "request" status bytes. It names no user agent.
SELECT
    number,
    bytes,
    '' AS domain,
    first_address(parts[1]) AS ip,
    bracketed_time(parts[1]) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_after(parts[3]) AS status,
    '' AS referrer,
    '' AS user_agent,
    '' AS country,
    len(parts) = 3 AND NOT names_a_host(parts[1]) AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (
    SELECT number, strlen(line) AS bytes, quoted_parts(line) AS parts,
        split_request(restore_escapes(parts[2])) AS request
    FROM lines
)

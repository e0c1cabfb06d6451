-- W3C extended, as IIS writes it: fields between spaces, and + for a space, so that ++ was a space and a plus.
-- Parameter: fields, the last #Fields line before these lines.
SELECT
    number,
    bytes,
    domain,
    ip,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(status) AS status,
    referrer,
    escape_backslashes(replace(replace(replace(user_agent, '++', ' ' || chr(1)), '+', ' '), chr(1), '+')) AS user_agent,
    country,
    is_complete,
    reject_reason,
    FALSE AS is_repaired
FROM w3c_fields('lines', $fields, ' ')

-- CloudFront's standard logs: W3C extended with tabs between the fields, which are percent-encoded.
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
    escape_backslashes(coalesce(try(url_decode(user_agent)), user_agent)) AS user_agent,
    country,
    is_complete,
    reject_reason,
    FALSE AS is_repaired
FROM w3c_fields('lines', $fields, chr(9))

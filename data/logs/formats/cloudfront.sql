-- CloudFront standard logs: W3C extended log format with tab-separated, percent-encoded fields.
-- Parameter: fields, the last #Fields directive before these lines.
SELECT
    number,
    bytes,
    domain,
    ip,
    coalesce(try(url_decode(forwarded)), forwarded) AS forwarded,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(status) AS status,
    bytes_sent,
    referrer,
    escape_backslashes(coalesce(try(url_decode(user_agent)), user_agent)) AS user_agent,
    country,
    scheme,
    fetch_mode,
    fetch_dest,
    purpose,
    accept_language,
    signature_agent,
    is_complete,
    reject_reason,
    FALSE AS is_repaired
FROM w3c_fields('lines', $fields, chr(9))

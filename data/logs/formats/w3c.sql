-- W3C extended log format as written by IIS: space-separated fields; + stands for a space, and ++ for a space and a +,
-- but not in quoted texts of its Advanced Logging. Local times are read as UTC, since their offset is not logged.
-- Parameter: fields, the last #Fields directive before these lines.
-- Example: #Fields: date time c-ip cs-method cs-host cs-uri-stem sc-status cs(User-Agent)
-- Example: 2026-03-04 10:05:03 203.0.113.7 GET go.example.com /abc 302 Mozilla/5.0+(X11)
SELECT
    number,
    bytes,
    domain,
    ip,
    replace(forwarded, '+', ' ') AS forwarded,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(status) AS status,
    bytes_sent,
    referrer,
    escape_backslashes(plus_decoded(user_agent)) AS user_agent,
    country,
    scheme,
    forwarded_proto,
    fetch_mode,
    fetch_dest,
    fetch_site,
    purpose,
    accept,
    accept_language,
    signature_agent,
    is_complete,
    reject_reason,
    FALSE AS is_repaired
FROM w3c_fields('lines', $fields, ' ')

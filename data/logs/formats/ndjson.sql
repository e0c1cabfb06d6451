-- Custom JSON lines; --columns maps their keys to the fields of a visit.
-- Parameters: fields, the names of the fields of a visit; paths, the JSON pointer of each.
-- Example: {"time":"2026-03-04T10:05:03Z","ip":"203.0.113.7","url":"https://go.example.com/abc","status":302,"user_agent":"Mozilla/5.0 (X11)"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(json_extract_string(json_line(line), $paths)) AS v FROM lines
), rows AS (
    SELECT number, bytes, parse_reported(v, $fields) AS parsed, v IS NOT NULL AS fits FROM objects
)
SELECT
    number,
    bytes,
    reported_domain(parsed) AS domain,
    parsed.ip,
    '' AS forwarded,
    parsed.visited_at,
    request.method,
    request.target,
    request.protocol,
    parsed.status,
    parsed.bytes_sent,
    parsed.referrer,
    parsed.user_agent,
    parsed.country,
    parsed.scheme,
    parsed.fetch_mode,
    parsed.fetch_dest,
    parsed.fetch_site,
    parsed.purpose,
    parsed.accept,
    parsed.accept_language,
    parsed.signature_agent,
    fits AND reported_target(parsed) <> '' AS is_complete,
    CASE WHEN fits THEN 'no url or path that begins with /' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(parsed.method, reported_target(parsed), parsed.protocol) AS request FROM rows)

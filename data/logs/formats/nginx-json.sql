-- JSON lines of nginx whose keys are the names of its variables. Parameter: variables, a JSON object of their types.
-- Without escape=json, nginx writes \xHH, which is not valid JSON.
WITH objects AS (
    SELECT number, strlen(line) AS bytes, coalesce(
        try(from_json(json_line(line), $variables)),
        try(from_json(replace(json_line(line), '\x', '\\x'), $variables))) AS v
    FROM lines
)
SELECT
    number,
    bytes,
    nginx_domain(v) AS domain,
    coalesce(v.remote_addr, '') AS ip,
    nginx_forwarded(v) AS forwarded,
    nginx_time(v) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(nullif(v.status, '')) AS status,
    coalesce(non_empty(v.body_bytes_sent), v.bytes_sent) AS bytes_sent,
    coalesce(non_empty(v.http_referer), '') AS referrer,
    coalesce(non_empty(v.http_user_agent), '') AS user_agent,
    nginx_country(v) AS country,
    coalesce(v.time_iso8601, v.time_local, v.msec) IS NOT NULL
        AND coalesce(v.request, v.request_uri, v.uri) IS NOT NULL AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, nginx_request(v) AS request FROM objects)

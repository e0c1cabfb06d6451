-- JSON lines of nginx whose keys are the names of its variables. Parameter: variables, the type of each.
-- Unless it is told escape=json, nginx writes \xHH, which JSON does not know.
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
    nginx_ip(v) AS ip,
    nginx_time(v) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(nullif(v.status, '')) AS status,
    coalesce(non_empty(v.http_referer), '') AS referrer,
    coalesce(non_empty(v.http_user_agent), '') AS user_agent,
    nginx_country(v) AS country,
    coalesce(v.time_iso8601, v.time_local, v.msec) IS NOT NULL
        AND coalesce(v.request, v.request_uri, v.uri) IS NOT NULL AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, nginx_request(v) AS request FROM objects)

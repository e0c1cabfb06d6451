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
    v.scheme,
    non_empty(v.http_x_forwarded_proto) AS forwarded_proto,
    dash_as_empty(v.http_sec_fetch_mode) AS fetch_mode,
    dash_as_empty(v.http_sec_fetch_dest) AS fetch_dest,
    nginx_purpose(v) AS purpose,
    dash_as_empty(v.http_x_firefox_ai) AS firefox_ai,
    dash_as_empty(v.http_accept_language) AS accept_language,
    dash_as_empty(v.http_signature_agent) AS signature_agent,
    dash_as_empty(v.http_signature_input) AS signature_input,
    coalesce(v.time_iso8601, v.time_local, v.msec) IS NOT NULL
        AND coalesce(v.request, v.request_uri, v.uri) IS NOT NULL AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, nginx_request(v) AS request FROM objects)

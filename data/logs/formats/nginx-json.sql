-- JSON lines of nginx with the names of its variables as keys. Parameter: variables, a JSON object with their types.
-- Without escape=json, nginx writes \xHH, which is not valid JSON.
-- Example: {"time_iso8601":"2026-03-04T10:05:03+00:00","remote_addr":"203.0.113.7","request":"GET /abc HTTP/1.1","status":"302","http_user_agent":"Mozilla/5.0 (X11)"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, coalesce(
        try(from_json(json_line(line), $variables)),
        try(from_json(replace(json_line(line), '\x', '\\x'), $variables))) AS v
    FROM lines
), complete AS (
    SELECT *, coalesce(v.time_iso8601, v.time_local, v.msec) IS NOT NULL
        AND coalesce(v.request, v.request_uri, v.uri) IS NOT NULL AS is_complete
    FROM objects
)
SELECT * FROM nginx_requests('complete')

-- Requests that load balancers and Cloud Run log in Google Cloud Logging, as JSON lines: entries with an object
-- `httpRequest`. A request without a response has no status. The size of the response includes headers, and some
-- addresses have ports.
-- Evidence: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#HttpRequest,
-- https://cloud.google.com/load-balancing/docs/https/https-logging-monitoring and
-- https://cloud.google.com/run/docs/logging
-- Example: {"timestamp":"2026-03-04T10:05:03Z","httpRequest":{"requestMethod":"GET","requestUrl":"https://go.example.com/abc","status":302,"remoteIp":"203.0.113.7","userAgent":"Mozilla/5.0 (X11)"}}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, starts_with(line, '[') AS is_array, try(from_json(json_line(line), '{
        "timestamp": "VARCHAR", "logName": "VARCHAR", "insertId": "VARCHAR", "httpRequest": {
            "requestMethod": "VARCHAR", "requestUrl": "VARCHAR", "protocol": "VARCHAR", "status": "VARCHAR",
            "responseSize": "VARCHAR", "userAgent": "VARCHAR", "referer": "VARCHAR", "remoteIp": "VARCHAR"}}')) AS v
    FROM lines
), parsed AS (
    SELECT *, v.httpRequest AS http, url_parts(v.httpRequest.requestUrl) AS url FROM objects
)
SELECT
    number,
    bytes,
    coalesce(url.host, '') AS domain,
    coalesce(without_port(http.remoteIp), '') AS ip,
    '' AS forwarded,
    parse_time(v.timestamp) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(coalesce(http.status, '0')) AS status,
    http.responseSize AS bytes_sent,
    coalesce(http.referer, '') AS referrer,
    escape_backslashes(http.userAgent) AS user_agent,
    '' AS country,
    nullif(lower(url.scheme), '') AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    v.timestamp IS NOT NULL AND http.requestUrl IS NOT NULL AS is_complete,
    CASE WHEN is_array THEN 'a JSON array; write each of its entries on a line of its own (jq -c ''.[]'')'
        WHEN coalesce(v.logName, v.insertId) IS NOT NULL AND http.requestUrl IS NULL
            THEN 'not a request (no httpRequest)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(http.requestMethod, '/' || url.rest, coalesce(http.protocol, '')) AS request FROM parsed)

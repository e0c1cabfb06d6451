-- Fastly's log streams as JSON lines, with the keys of the log format that data/logs/README.md recommends.
-- Evidence: https://www.fastly.com/documentation/guides/integrations/streaming-logs/custom-log-formats
-- A request that passes a shield is logged there again, with fastly_is_edge false.
-- Example: {"timestamp":"2026-03-04T10:05:03+0000","client_ip":"203.0.113.7","host":"go.example.com","url":"/abc","request_method":"GET","response_status":302,"request_user_agent":"Mozilla/5.0 (X11)"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "timestamp": "VARCHAR", "client_ip": "VARCHAR", "host": "VARCHAR", "url": "VARCHAR",
        "request_method": "VARCHAR", "request_protocol": "VARCHAR", "request_referer": "VARCHAR",
        "request_user_agent": "VARCHAR", "response_status": "VARCHAR", "response_body_size": "VARCHAR",
        "geo_country_code": "VARCHAR", "fastly_is_edge": "VARCHAR"}')) AS v
    FROM lines
), parsed AS (
    SELECT *, coalesce(v.fastly_is_edge, 'true') <> 'false' AS is_edge,
        checked_request(v.request_method, v.url, v.request_protocol) AS request
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.host), '') AS domain,
    coalesce(v.client_ip, '') AS ip,
    '' AS forwarded,
    parse_time(v.timestamp) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.response_status) AS status,
    v.response_body_size AS bytes_sent,
    coalesce(non_empty(v.request_referer), '') AS referrer,
    escape_backslashes(non_empty(v.request_user_agent)) AS user_agent,
    country_of(v.geo_country_code) AS country,
    is_edge AND v.timestamp IS NOT NULL AND v.url IS NOT NULL AND v.response_status IS NOT NULL AS is_complete,
    CASE WHEN NOT is_edge THEN 'logged by a shield (fastly_is_edge is false)' END AS reject_reason,
    FALSE AS is_repaired
FROM parsed

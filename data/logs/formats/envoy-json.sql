-- JSON lines of Envoy with the keys that Istio, Envoy Gateway or Contour give them by default.
-- A line with the key `time` is read as ndjson instead.
-- Evidence: https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format,
-- https://gateway.envoyproxy.io/docs/tasks/observability/proxy-accesslog/ and
-- https://projectcontour.io/docs/main/config/access-logging/
-- Example: {"start_time":"2026-03-04T10:05:03.000Z","method":"GET","path":"/abc","response_code":302,"response_flags":"-","authority":"go.example.com","user_agent":"Mozilla/5.0 (X11)","x_forwarded_for":"203.0.113.7","downstream_remote_address":"203.0.113.7:33000"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "start_time": "VARCHAR", "@timestamp": "VARCHAR", "time": "VARCHAR", "method": "VARCHAR", "path": "VARCHAR",
        "x-envoy-origin-path": "VARCHAR", "protocol": "VARCHAR", "response_code": "VARCHAR",
        "response_flags": "VARCHAR", "bytes_sent": "VARCHAR", "user_agent": "VARCHAR", "user-agent": "VARCHAR",
        "authority": "VARCHAR", ":authority": "VARCHAR", "x_forwarded_for": "VARCHAR", "x-forwarded-for": "VARCHAR",
        "downstream_remote_address": "VARCHAR"}')) AS v
    FROM lines
), parsed AS (
    SELECT *, coalesce(v.start_time, v['@timestamp']) AS logged_at,
        coalesce(non_empty(v['x-envoy-origin-path']), non_empty(v.path)) AS path,
        coalesce(non_empty(v.x_forwarded_for), non_empty(v['x-forwarded-for']), '') AS chain,
        address_of(non_empty(v.downstream_remote_address)) AS peer,
        v.response_code IS NOT NULL AND v.response_flags IS NOT NULL AND v.time IS NULL AS is_envoy,
        coalesce(non_empty(v.protocol), path) IS NOT NULL AS is_http
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.authority), non_empty(v[':authority']), '') AS domain,
    coalesce(peer, chain) AS ip,
    CASE WHEN peer IS NOT NULL THEN chain ELSE '' END AS forwarded,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.response_code) AS status,
    v.bytes_sent,
    '' AS referrer,
    escape_backslashes(coalesce(non_empty(v.user_agent), non_empty(v['user-agent']))) AS user_agent,
    '' AS country,
    CAST(NULL AS VARCHAR) AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    is_envoy AND is_http AND logged_at IS NOT NULL AS is_complete,
    CASE WHEN is_envoy AND NOT is_http THEN 'not a request (a connection without HTTP)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(non_empty(v.method), path, coalesce(v.protocol, '')) AS request FROM parsed)

-- Envoy's default text format, and Istio's, which has three more fields before the sizes and six more at the end. Kubernetes,
-- syslog or `docker compose logs` may write a prefix.
-- Istio logs the address that connected. Envoy itself logs only X-Forwarded-For, to which an Envoy at the edge appends that
-- address. Connections without HTTP are logged as "- - -".
-- Evidence: https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
-- and https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format
-- Example: [2026-03-04T10:05:03.000Z] "GET /abc HTTP/2" 302 - 0 5316 3 2 "203.0.113.7" "Mozilla/5.0 (X11)" "11111111-2222-3333-4444-555555555550" "go.example.com" "10.0.0.7:8080"
WITH found AS (
    SELECT number, strlen(line) AS bytes, regexp_extract(line,
        '^(?:[^"]*? )?\[(\d{4}-\d\d-\d\dT\S+)\] "(.*)" (\d+) (\S+) (?:\S+ \S+ "[^"]*" )?(?:\d+|-) (\d+|-) (?:\d+|-) \S+ '
        || '"([^"]*)" "(.*)" "([^" ]*)" "([^" ]*)" "([^" ]*)"((?: \S+)*)$',
        ['logged_at', 'request', 'status', 'flags', 'bytes_sent', 'forwarded', 'user_agent', 'id', 'host', 'upstream',
            'more']) AS v
    FROM lines
), split AS (
    SELECT *, split_request(v.request) AS request, address_of(non_empty(string_split(v.more, ' ')[5])) AS peer FROM found
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.host), '') AS domain,
    coalesce(peer, dash_as_empty(v.forwarded)) AS ip,
    CASE WHEN peer IS NOT NULL THEN dash_as_empty(v.forwarded) ELSE '' END AS forwarded,
    parse_time(v.logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status) AS status,
    v.bytes_sent,
    '' AS referrer,
    escape_backslashes(dash_as_empty(v.user_agent)) AS user_agent,
    '' AS country,
    CAST(NULL AS VARCHAR) AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    v.flags <> '' AND v.request <> '- - -' AS is_complete,
    CASE WHEN v.request = '- - -' THEN 'not a request (a connection without HTTP)' END AS reject_reason,
    FALSE AS is_repaired
FROM split

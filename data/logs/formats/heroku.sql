-- Heroku's router: key=value pairs after the time and name that `heroku logs` or a syslog drain writes. There is no
-- user agent and no referrer. `fwd` is the chain of X-Forwarded-For; it ends with the address that connected.
-- `protocol` is the scheme; with the current router, it is the HTTP version, and `tls` shows the scheme.
-- Evidence: https://devcenter.heroku.com/articles/http-routing#heroku-router-log-format
-- Example: 2026-03-04T10:05:03+00:00 heroku[router]: at=info method=GET path="/abc" host=go.example.com request_id=r1 fwd="203.0.113.7" dyno=web.1 connect=0ms service=3ms status=302 bytes=5316 protocol=https
WITH found AS (
    SELECT number, strlen(line) AS bytes,
        regexp_extract(line, '^(.*?\s)(?:heroku|app)(?:\[[\w.-]+\]:| [\w.-]+ -|/[\w.-]+:) ', 1) AS before,
        regexp_extract(line, '\sheroku(?:\[router\]:| router -|/router:) .*?'
            || '\bmethod=([A-Z]{2,20}) path="(.*)" host=(\S*) (.*)$',
            ['method', 'path', 'host', 'rest']) AS v
    FROM lines
), parsed AS (
    SELECT number, bytes, before <> '' AS is_heroku, v,
        regexp_extract(before, '\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)') AS logged_at,
        regexp_extract(v.rest, '\bfwd="([^"]*)"', 1) AS fwd,
        regexp_extract(v.rest, '\bstatus=(\d+)', 1) AS status,
        regexp_extract(v.rest, '\bbytes=(\d+)', 1) AS bytes_sent,
        regexp_extract(v.rest, '\bprotocol=(\S+)', 1) AS protocol,
        regexp_extract(v.rest, '\btls=(true|false)', 1) AS tls
    FROM found
)
SELECT
    number,
    bytes,
    v.host AS domain,
    fwd AS ip,
    '' AS forwarded,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(status) AS status,
    bytes_sent,
    '' AS referrer,
    '' AS user_agent,
    '' AS country,
    CASE WHEN protocol IN ('http', 'https') THEN protocol
        WHEN tls = 'true' THEN 'https' WHEN tls = 'false' THEN 'http' END AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    is_heroku AND v.path <> '' AND status <> '' AS is_complete,
    CASE WHEN is_heroku AND v.path = '' THEN 'not a request (another Heroku entry)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(v.method, v.path, upper(replace(protocol, 'http', 'http/'))) AS request FROM parsed)

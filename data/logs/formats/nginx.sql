-- Logs described by nginx's log_format directive.
-- Parameters, from nginx_log_format.py: pattern, a regular expression; names, the names of its groups.
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
    fits AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (
    SELECT *, nginx_request(v) AS request
    FROM (
        SELECT number, strlen(line) AS bytes, regexp_extract(line, $pattern, $names) AS v,
            regexp_matches(line, $pattern) AS fits
        FROM lines
    )
)

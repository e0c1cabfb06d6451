-- Nginx Proxy Manager: [time] cache upstream-status status - method scheme host "uri" [Client address] [Length bytes]
-- [Gzip ratio] [Sent-to server] "user agent" "referrer" (`proxy`), or without cache, upstream status and server
-- (`standard`, as in its fallback log). An invalid request has no method and no URI.
-- Evidence: docker/rootfs/etc/nginx/conf.d/include/log-proxy.conf of https://github.com/NginxProxyManager/nginx-proxy-manager
-- Example: [04/Mar/2026:10:05:03 +0000] - 302 302 - GET https go.example.com "/abc" [Client 203.0.113.7] [Length 5316] [Gzip -] [Sent-to 10.0.0.7] "Mozilla/5.0 (X11)" "https://t.co/"
WITH matched AS (
    SELECT number, strlen(line) AS bytes, regexp_extract(line,
        '\[(\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] (?:\S+ [0-9-][0-9, :-]* )?'
        || '(\d{3}) - (\S+) (\S+) (\S+) "([^"]*)" '
        || '\[Client ([^\]]*)\] \[Length (\d+|-)\] \[Gzip [^\]]*\] (?:\[Sent-to [^\]]*\] )?"([^"]*)" "([^"]*)"',
        ['logged_at', 'status', 'method', 'scheme', 'host', 'uri', 'ip', 'bytes_sent', 'user_agent', 'referrer']) AS v
    FROM lines
), parsed AS (
    SELECT *, CASE WHEN non_empty(v.uri) IS NULL THEN checked_request('', '', '')
        ELSE checked_request(v.method, v.uri, '') END AS request
    FROM matched
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.host), '') AS domain,
    coalesce(non_empty(v.ip), '') AS ip,
    '' AS forwarded,
    local_time(v.logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status) AS status,
    v.bytes_sent,
    coalesce(non_empty(v.referrer), '') AS referrer,
    coalesce(non_empty(v.user_agent), '') AS user_agent,
    '' AS country,
    non_empty(v.scheme) AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    v.status <> '' AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM parsed

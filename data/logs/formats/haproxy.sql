-- HAProxy's `option httplog`, and `httpslog`, which has more fields after the request. syslog may write a prefix.
-- Evidence: https://docs.haproxy.org/2.6/configuration.html#8.2.3 and #8.6 (" # { | } are written as # and two digits)
-- Parameters, from captures.py: at, the position of each header among the captures (from 1; 0: not captured); named, the
-- number of captures that the user named; if 0, they must be Host, User-Agent and Referer, optionally followed by the
-- other headers of RECOMMENDED. In a line without captures (<BADREQ>), headers are unknown. A frontend with ~ uses TLS.
-- A connection that the client closed (C) or left idle (c) before sending a request (R, <BADREQ>) gives no row:
-- browsers open spare connections. Evidence: https://docs.haproxy.org/2.6/configuration.html#8.5
-- Times are local; their offset from UTC is taken from syslog's time, if that time has an offset.
-- Example: 2026-03-04T10:05:03+00:00 lb haproxy[812]: 203.0.113.7:51324 [04/Mar/2026:10:05:03.401] web links/app1 0/0/1/8/9 302 5316 - - ---- 2/2/0/0/0 0/0 {go.example.com|Mozilla/5.0 (X11)|} "GET /abc HTTP/1.1"
WITH found AS (
    SELECT number, strlen(line) AS bytes, contains(line, 'haproxy[') AS is_haproxy, regexp_extract(line,
        '^(.* )?(\S+):\d+ \[(\S{20})\.\d{3}\] (\S+) \S+/\S+ [-+0-9/]+ (-?\d+) (\+?\d+) \S+ \S+ (\S{4}) [+0-9/]+ \d+/\d+ '
        || '(?:(\{[^}]*)\} )?(?:\{[^}]*\} )?"([^"]*)("?)',
        ['before', 'ip', 'logged_at', 'frontend', 'status', 'bytes_sent', 'state', 'captured', 'request', 'closing'])
        AS v
    FROM lines
), split AS (
    SELECT *,
        CASE WHEN v.captured <> '' THEN string_split(v.captured[2:], '|') ELSE [] END AS captured,
        hash_decoded(v.request) AS request_line,
        regexp_extract(v.before, 'T\d\d:\d\d:\d\d(?:\.\d+)?([+-]\d\d):?(\d\d)', ['hours', 'minutes']) AS shift
    FROM found
    WHERE NOT (v.request = '<BADREQ>' AND v.state[1] IN ('C', 'c') AND v.state[2] = 'R')
)
SELECT
    number,
    bytes,
    coalesce(non_empty(hash_decoded(captured[$at['host']])), regexp_extract(request_line, '^\S+ [a-z]+://([^/?# ]*)', 1))
        AS domain,
    v.ip,
    coalesce(captured[$at['x-forwarded-for']], '') AS forwarded,
    local_time(v.logged_at || ' ' || CASE WHEN shift.hours = '' THEN '+0000' ELSE shift.hours || shift.minutes END)
        AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status) AS status,
    CASE WHEN NOT starts_with(v.bytes_sent, '+') THEN v.bytes_sent END AS bytes_sent,
    coalesce(hash_decoded(captured[$at['referer']]), '') AS referrer,
    escape_backslashes(hash_decoded(captured[$at['user-agent']])) AS user_agent,
    '' AS country,
    CASE WHEN ends_with(v.frontend, '~') THEN 'https' ELSE 'http' END AS scheme,
    nullif(captured[$at['x-forwarded-proto']], '') AS forwarded_proto,
    captured[$at['sec-fetch-mode']] AS fetch_mode,
    captured[$at['sec-fetch-dest']] AS fetch_dest,
    captured[$at['sec-fetch-site']] AS fetch_site,
    captured[$at['sec-purpose']] AS purpose,
    captured[$at['x-firefox-ai']] AS firefox_ai,
    captured[$at['accept']] AS accept,
    captured[$at['accept-language']] AS accept_language,
    hash_decoded(captured[$at['signature-agent']]) AS signature_agent,
    captured[$at['signature-input']] AS signature_input,
    v.closing = '"' AND CASE WHEN $named = 0 THEN len(captured) IN (0, 1, 3, 10)
        ELSE len(captured) = 0 OR len(captured) >= $named END AS is_complete,
    CASE WHEN v.closing = '"' AND $named > 0 THEN 'fewer captured request headers (' || len(captured)
            || ') than --captures names (' || $named || '); name those that HAProxy captures, in their order'
        WHEN v.closing = '"' THEN 'captured request headers are not Host, User-Agent and Referer; '
            || 'name yours with --captures'
        WHEN v.request <> '' THEN 'truncated inside the request'
        WHEN is_haproxy THEN 'not a request (another HAProxy message)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, split_request(request_line) AS request FROM split)

-- HAProxy's `option httplog`, and `httpslog`, which has more behind the request, after whatever syslog writes before.
-- Evidence: https://docs.haproxy.org/2.6/configuration.html#8.2.3 and #8.6 (" # { | } are written as # and two digits)
-- Captured request headers must be Host, User-Agent and Referer, in this order, and may go on with Sec-Fetch-Mode,
-- Sec-Fetch-Dest, Sec-Purpose, Accept-Language, Signature-Agent, and the last values of X-Forwarded-For and
-- X-Forwarded-Proto. A frontend with ~ has TLS.
-- A connection that its client ended (C) or left silent (c) before it had sent a request (R, <BADREQ>) gives no row:
-- browsers open spare ones. Evidence: https://docs.haproxy.org/2.6/configuration.html#8.5
-- The times are local: their offset from UTC is that of syslog's time where it has one.
WITH found AS (
    SELECT number, strlen(line) AS bytes, contains(line, 'haproxy[') AS is_haproxy, regexp_extract(line,
        '^(.* )?(\S+):\d+ \[(\S{20})\.\d{3}\] (\S+) \S+/\S+ [-+0-9/]+ (-?\d+) (\+?\d+) \S+ \S+ (\S{4}) [+0-9/]+ \d+/\d+ '
        || '(?:\{([^}]*)\} )?(?:\{[^}]*\} )?"([^"]*)("?)',
        ['before', 'ip', 'logged_at', 'frontend', 'status', 'bytes_sent', 'state', 'captured', 'request', 'closing'])
        AS v
    FROM lines
), split AS (
    SELECT *, string_split(v.captured, '|') AS captured,
        hash_decoded(v.request) AS request_line,
        regexp_extract(v.before, 'T\d\d:\d\d:\d\d(?:\.\d+)?([+-]\d\d):?(\d\d)', ['hours', 'minutes']) AS shift
    FROM found
    WHERE NOT (v.request = '<BADREQ>' AND v.state[1] IN ('C', 'c') AND v.state[2] = 'R')
)
SELECT
    number,
    bytes,
    coalesce(non_empty(hash_decoded(captured[1])), regexp_extract(request_line, '^\S+ [a-z]+://([^/?# ]*)', 1)) AS domain,
    v.ip,
    coalesce(captured[9], '') AS forwarded,
    local_time(v.logged_at || ' ' || CASE WHEN shift.hours = '' THEN '+0000' ELSE shift.hours || shift.minutes END)
        AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status) AS status,
    CASE WHEN NOT starts_with(v.bytes_sent, '+') THEN v.bytes_sent END AS bytes_sent,
    coalesce(hash_decoded(captured[3]), '') AS referrer,
    escape_backslashes(hash_decoded(captured[2])) AS user_agent,
    '' AS country,
    CASE WHEN ends_with(v.frontend, '~') THEN 'https' ELSE 'http' END AS scheme,
    nullif(captured[10], '') AS forwarded_proto,
    captured[4] AS fetch_mode,
    captured[5] AS fetch_dest,
    captured[6] AS purpose,
    captured[7] AS accept_language,
    captured[8] AS signature_agent,
    v.closing = '"' AND len(captured) IN (1, 3, 10) AS is_complete,
    CASE WHEN v.closing = '"' THEN 'captured request headers are not Host, User-Agent and Referer'
        WHEN v.request <> '' THEN 'cut short inside the request'
        WHEN is_haproxy THEN 'not a request (another message of HAProxy)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, split_request(request_line) AS request FROM split)

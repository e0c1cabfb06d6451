-- Amazon S3 server access logs: owner bucket [time] address requester request operation key "request" status error bytes
-- size total turn-around "referrer" "agent" version host-id signature cipher authentication host TLS, and possibly more;
-- old lines end with the version or the host.
-- Quotes inside the user agent are not escaped. Operations of S3 itself, such as expiring objects, are not requests.
-- Evidence: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
-- Example: 79a59df900b949e5 go.example.com [04/Mar/2026:10:05:03 +0000] 203.0.113.7 - 3E57427F3 WEBSITE.GET.OBJECT abc "GET /abc HTTP/1.1" 302 - 5316 - 7 - "https://t.co/x" "Mozilla/5.0 (X11)" - s9lzHYrFp76= - ECDHE-RSA-AES128-GCM-SHA256 - go.example.com TLSv1.2 - -
WITH found AS (
    SELECT number, strlen(line) AS bytes, regexp_extract(line,
        '^\S+ \S+ \[([^\]]{26})\] (\S+) \S+ \S+ ([A-Z][A-Z0-9]*\.\S+) \S+ (?:"(.*?)"|(-)) (\d{3}|-) \S+ (\d+|-) \S+ \S+ \S+ '
        || '(?:"(.*?)"|-) (?:"(.*)"|-) \S+((?: \S+)*)$',
        ['logged_at', 'ip', 'operation', 'request', 'no_request', 'status', 'bytes_sent', 'referrer', 'user_agent',
            'more']) AS v
    FROM lines
), split AS (
    SELECT *, string_split(v.more, ' ') AS words, split_request(v.request) AS request,
        regexp_matches(v.operation, '^(?:REST|WEBSITE|SOAP)\.') AND v.no_request = '' AS is_request
    FROM found
)
SELECT
    number,
    bytes,
    coalesce(non_empty(words[6]), '') AS domain,
    dash_as_empty(v.ip) AS ip,
    '' AS forwarded,
    local_time(v.logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status) AS status,
    v.bytes_sent,
    dash_as_empty(v.referrer) AS referrer,
    escape_backslashes(dash_as_empty(v.user_agent)) AS user_agent,
    '' AS country,
    CASE WHEN words[7] = '-' THEN 'http' WHEN words[7] <> '' THEN 'https' END AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    v.operation <> '' AND is_request AND (len(words) = 1 OR len(words) > 5) AS is_complete,
    CASE WHEN v.operation <> '' AND NOT is_request THEN 'not a request (an operation of S3 itself)' END AS reject_reason,
    FALSE AS is_repaired
FROM split

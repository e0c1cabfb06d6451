-- Bunny CDN: cache status|status|milliseconds since 1970|bytes|pull zone|address|referrer|URL|place|agent|request|country
-- Referrer, URL and user agent may contain |. By default, addresses are anonymized: they lack the last part or are 0.0.0.0.
-- Evidence: https://docs.bunny.net/cdn/logging
-- Example: HIT|302|1772618703000|5316|390|203.0.113.7|https://t.co/x|https://go.example.com/abc|FRA|Mozilla/5.0 (X11)|322b688bd63fb63f2babe9de30a5d262|DE
WITH found AS (
    SELECT number, strlen(line) AS bytes, regexp_extract(line,
        '^[A-Z_-]*\|(\d{1,3}|-)\|(\d+)\|(\d+|-)\|\d+\|([^|]*)\|(.*?)\|(https?://[^ ]*?)\|(?:[A-Za-z]+\d*|-)?\|'
        || '(.*)\|[^|]*\|([^|]*)$',
        ['status', 'milliseconds', 'bytes_sent', 'ip', 'referrer', 'url', 'user_agent', 'country']) AS v
    FROM lines
)
SELECT
    number,
    bytes,
    url.host AS domain,
    CASE WHEN v.ip IN ('-', '0.0.0.0', '::') THEN '' ELSE v.ip END AS ip,
    '' AS forwarded,
    parse_time(v.milliseconds) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status) AS status,
    v.bytes_sent,
    dash_as_empty(v.referrer) AS referrer,
    escape_backslashes(dash_as_empty(v.user_agent)) AS user_agent,
    country_of(v.country) AS country,
    nullif(lower(url.scheme), '') AS scheme,
    v.url <> '' AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, url_parts(v.url) AS url, checked_request('GET', '/' || url_parts(v.url).rest, '') AS request FROM found)

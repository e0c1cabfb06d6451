-- Netlify's log drains as JSON lines (NDJSON): traffic logs. Logs of functions, deploys and the firewall have other types.
-- If the drain is set to leave out personal data, there is no address and no user agent.
-- Evidence: https://docs.netlify.com/manage/monitoring/log-drains/
-- Example: {"timestamp":"2026-03-04T10:05:03Z","log_type":"traffic","client_ip":"203.0.113.7","method":"GET","url":"https://go.example.com/abc","status_code":302,"user_agent":"Mozilla/5.0 (X11)"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, starts_with(line, '[') AS is_array, try(from_json(json_line(line), '{
        "log_type": "VARCHAR", "site_id": "VARCHAR", "timestamp": "VARCHAR", "client_ip": "VARCHAR", "method": "VARCHAR",
        "url": "VARCHAR", "domain": "VARCHAR", "status_code": "VARCHAR", "user_bytes": "VARCHAR", "referrer": "VARCHAR",
        "user_agent": "VARCHAR", "country": "VARCHAR"}')) AS v
    FROM lines
), parsed AS (
    SELECT *, regexp_extract(v.url, '^(?:(?i)(https?)://([^/?#]+))?/?([^#]*)', ['scheme', 'host', 'rest']) AS address
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(nullif(address.host, ''), non_empty(v.domain), '') AS domain,
    coalesce(non_empty(v.client_ip), '') AS ip,
    '' AS forwarded,
    parse_time(v.timestamp) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.status_code) AS status,
    v.user_bytes AS bytes_sent,
    coalesce(non_empty(v.referrer), '') AS referrer,
    escape_backslashes(non_empty(v.user_agent)) AS user_agent,
    country_of(v.country) AS country,
    nullif(lower(address.scheme), '') AS scheme,
    v.log_type = 'traffic' AND v.timestamp IS NOT NULL AND v.url IS NOT NULL AND v.status_code IS NOT NULL AS is_complete,
    CASE WHEN is_array THEN 'a JSON array; write each of its entries on a line of its own'
        WHEN v.site_id IS NOT NULL AND v.log_type <> 'traffic' THEN 'not a request (log_type is not traffic)' END
        AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(v.method, '/' || address.rest, '') AS request FROM parsed)

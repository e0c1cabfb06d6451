-- Traefik's access log as JSON lines. Its log in the Common Log Format is `combined` with more behind it.
-- Evidence: https://doc.traefik.io/traefik/observability/access-logs/ (fields; headers are prefixed by request_)
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "StartUTC": "VARCHAR", "StartLocal": "VARCHAR", "ClientAddr": "VARCHAR", "ClientHost": "VARCHAR", "RequestHost": "VARCHAR",
        "RequestMethod": "VARCHAR", "RequestPath": "VARCHAR", "RequestProtocol": "VARCHAR",
        "DownstreamStatus": "VARCHAR", "DownstreamContentSize": "VARCHAR", "request_Referer": "VARCHAR",
        "request_User-Agent": "VARCHAR", "request_Cf-Ipcountry": "VARCHAR", "level": "VARCHAR"}')) AS v
    FROM lines
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.RequestHost), '') AS domain,
    coalesce(address_of(v.ClientAddr), '') AS ip,
    coalesce(v.ClientHost, '') AS forwarded,
    parse_time(coalesce(v.StartUTC, v.StartLocal)) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.DownstreamStatus) AS status,
    v.DownstreamContentSize AS bytes_sent,
    coalesce(nullif(v.request_Referer, 'REDACTED'), '') AS referrer,
    escape_backslashes(nullif(v['request_User-Agent'], 'REDACTED')) AS user_agent,
    country_of(v['request_Cf-Ipcountry']) AS country,
    v.DownstreamStatus IS NOT NULL AND v.RequestPath IS NOT NULL AS is_complete,
    CASE WHEN v.level IS NOT NULL AND v.RequestPath IS NULL
        THEN 'not an access log entry (another logger)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(v.RequestMethod, v.RequestPath, v.RequestProtocol) AS request FROM objects)

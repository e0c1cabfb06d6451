-- Traefik's access log as JSON lines. Its Common Log Format is `combined` with more fields at the end.
-- A missing header is unknown: it was not sent, or Traefik does not keep it. A header logged as REDACTED was sent.
-- Evidence: https://doc.traefik.io/traefik/observability/access-logs/ (fields; headers are prefixed by request_)
-- Example: {"StartUTC":"2026-03-04T10:05:03Z","ClientHost":"203.0.113.7","RequestHost":"go.example.com","RequestMethod":"GET","RequestPath":"/abc","DownstreamStatus":302}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "StartUTC": "VARCHAR", "StartLocal": "VARCHAR", "ClientAddr": "VARCHAR", "ClientHost": "VARCHAR", "RequestHost": "VARCHAR",
        "RequestMethod": "VARCHAR", "RequestPath": "VARCHAR", "RequestProtocol": "VARCHAR",
        "DownstreamStatus": "VARCHAR", "DownstreamContentSize": "VARCHAR", "request_Referer": "VARCHAR",
        "request_User-Agent": "VARCHAR", "request_Cf-Ipcountry": "VARCHAR", "level": "VARCHAR",
        "RequestScheme": "VARCHAR", "request_X-Forwarded-Proto": "VARCHAR", "request_Sec-Fetch-Mode": "VARCHAR",
        "request_Sec-Fetch-Dest": "VARCHAR", "request_Sec-Fetch-Site": "VARCHAR", "request_Sec-Purpose": "VARCHAR",
        "request_Accept": "VARCHAR", "request_Accept-Language": "VARCHAR", "request_Signature-Agent": "VARCHAR"}')) AS v
    FROM lines
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.RequestHost), '') AS domain,
    coalesce(address_of(v.ClientAddr), '') AS ip,
    CASE WHEN v.ClientHost <> address_of(v.ClientAddr) THEN v.ClientHost ELSE '' END AS forwarded,
    parse_time(coalesce(v.StartUTC, v.StartLocal)) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.DownstreamStatus) AS status,
    v.DownstreamContentSize AS bytes_sent,
    coalesce(nullif(v.request_Referer, 'REDACTED'), '') AS referrer,
    escape_backslashes(nullif(v['request_User-Agent'], 'REDACTED')) AS user_agent,
    country_of(v['request_Cf-Ipcountry']) AS country,
    v.RequestScheme AS scheme,
    v['request_X-Forwarded-Proto'] AS forwarded_proto,
    nullif(v['request_Sec-Fetch-Mode'], '') AS fetch_mode,
    nullif(v['request_Sec-Fetch-Dest'], '') AS fetch_dest,
    nullif(v['request_Sec-Fetch-Site'], '') AS fetch_site,
    nullif(v['request_Sec-Purpose'], '') AS purpose,
    v.request_Accept AS accept,
    nullif(v['request_Accept-Language'], '') AS accept_language,
    nullif(v['request_Signature-Agent'], '') AS signature_agent,
    v.DownstreamStatus IS NOT NULL AND v.RequestPath IS NOT NULL AS is_complete,
    CASE WHEN v.level IS NOT NULL AND v.RequestPath IS NULL
        THEN 'not an access log entry (another logger)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(v.RequestMethod, v.RequestPath, v.RequestProtocol) AS request FROM objects)

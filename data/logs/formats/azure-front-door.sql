-- Access logs of Azure Front Door and its classic tier: resource logs as JSON lines, with the request in `properties`.
-- clientIp may come from the client's own X-Forwarded-For; socketIp is the address that connected. Requests between
-- points of presence are logged, too; in their entries, isReceivedFromClient is false.
-- Evidence: https://learn.microsoft.com/en-us/azure/frontdoor/monitor-front-door and
-- https://learn.microsoft.com/en-us/azure/frontdoor/front-door-diagnostics
-- Example: {"time":"2026-03-04T10:05:03Z","category":"FrontDoorAccessLog","properties":{"httpMethod":"GET","requestUri":"https://go.example.com:443/abc","hostName":"go.example.com","socketIp":"203.0.113.7","httpStatusCode":"302","userAgent":"Mozilla/5.0 (X11)"}}
WITH objects AS (
    SELECT number, bytes, try(from_json(entry, '{
        "time": "VARCHAR", "category": "VARCHAR", "properties": {
            "httpMethod": "VARCHAR", "httpVersion": "VARCHAR", "requestUri": "VARCHAR", "requestProtocol": "VARCHAR",
            "hostName": "VARCHAR", "clientIp": "VARCHAR", "socketIp": "VARCHAR", "httpStatusCode": "VARCHAR",
            "responseBytes": "VARCHAR", "referer": "VARCHAR", "userAgent": "VARCHAR", "clientCountry": "VARCHAR",
            "isReceivedFromClient": "VARCHAR"}}')) AS v
    FROM azure_entries('lines')
), parsed AS (
    SELECT *, v.properties AS p, url_parts(v.properties.requestUri) AS url,
        coalesce(non_empty(v.properties.socketIp), v.properties.clientIp, '') AS peer,
        lower(coalesce(v.properties.isReceivedFromClient, 'true')) <> 'false' AS is_from_client,
        contains(lower(v.category), 'frontdooraccesslog') OR v.category IS NULL AS is_access
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(non_empty(p.hostName), url.host, '') AS domain,
    peer AS ip,
    CASE WHEN p.clientIp <> peer THEN p.clientIp ELSE '' END AS forwarded,
    parse_time(v.time) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(p.httpStatusCode) AS status,
    p.responseBytes AS bytes_sent,
    coalesce(non_empty(p.referer), '') AS referrer,
    escape_backslashes(non_empty(p.userAgent)) AS user_agent,
    country_of(p.clientCountry) AS country,
    lower(coalesce(non_empty(p.requestProtocol), nullif(url.scheme, ''))) AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    is_access AND is_from_client AND v.time IS NOT NULL AND p.requestUri IS NOT NULL AND p.httpStatusCode IS NOT NULL
        AS is_complete,
    CASE WHEN NOT is_access THEN 'not an access log entry (another category)'
        WHEN NOT is_from_client THEN 'answered to another point of presence (isReceivedFromClient is false)' END
        AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(p.httpMethod, '/' || url.rest,
    'HTTP/' || regexp_extract(p.httpVersion, '^(?:HTTP/)?(\d(?:\.\d)?)', 1)) AS request FROM parsed)

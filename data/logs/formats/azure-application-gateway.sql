-- Access logs of Azure Application Gateway: resource logs as JSON lines, with the request in `properties`.
-- Gateways of version 1 write + for a space in the user agent, and append the chosen server to the query.
-- clientIP is the address that connected: behind another proxy, the proxy's address.
-- Evidence: https://learn.microsoft.com/en-us/azure/application-gateway/monitor-application-gateway-reference and
-- https://learn.microsoft.com/en-us/azure/azure-monitor/reference/tables/agwaccesslogs
-- Example: {"timeStamp":"2026-03-04T10:05:03+00:00","category":"ApplicationGatewayAccessLog","properties":{"httpMethod":"GET","originalRequestUriWithArgs":"/abc","requestUri":"/abc","originalHost":"go.example.com","clientIP":"203.0.113.7","httpStatus":302,"userAgent":"Mozilla/5.0 (X11)"}}
WITH objects AS (
    SELECT number, bytes, try(from_json(entry, '{
        "time": "VARCHAR", "timeStamp": "VARCHAR", "category": "VARCHAR", "properties": {
            "httpMethod": "VARCHAR", "httpVersion": "VARCHAR", "requestUri": "VARCHAR", "requestQuery": "VARCHAR",
            "originalRequestUriWithArgs": "VARCHAR", "host": "VARCHAR", "originalHost": "VARCHAR",
            "clientIP": "VARCHAR", "httpStatus": "VARCHAR", "sentBytes": "VARCHAR", "userAgent": "VARCHAR",
            "sslEnabled": "VARCHAR"}}')) AS v
    FROM azure_entries('lines')
), parsed AS (
    SELECT *, v.properties AS p, v.category = 'ApplicationGatewayAccessLog' OR v.category IS NULL AS is_access,
        regexp_replace(coalesce(v.properties.requestQuery, ''), '&?X-AzureApplicationGateway-.*$', '') AS query
    FROM objects
), targets AS (
    SELECT *, url_parts(coalesce(non_empty(p.originalRequestUriWithArgs),
        p.requestUri || CASE WHEN query IN ('', '-') OR contains(p.requestUri, '?') THEN '' ELSE '?' || query END)) AS url
    FROM parsed
)
SELECT
    number,
    bytes,
    coalesce(non_empty(p.originalHost), non_empty(p.host), url.host, '') AS domain,
    coalesce(non_empty(p.clientIP), '') AS ip,
    '' AS forwarded,
    parse_time(coalesce(v.timeStamp, v.time)) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(p.httpStatus) AS status,
    p.sentBytes AS bytes_sent,
    '' AS referrer,
    escape_backslashes(plus_decoded(non_empty(p.userAgent))) AS user_agent,
    '' AS country,
    CASE p.sslEnabled WHEN 'on' THEN 'https' WHEN 'off' THEN 'http' END AS scheme,
    CAST(NULL AS VARCHAR) AS forwarded_proto,
    is_access AND coalesce(v.timeStamp, v.time) IS NOT NULL AND p.requestUri IS NOT NULL AND p.httpStatus IS NOT NULL
        AS is_complete,
    CASE WHEN NOT is_access THEN 'not an access log entry (another category)' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(p.httpMethod, '/' || url.rest, coalesce(p.httpVersion, '')) AS request
    FROM targets)

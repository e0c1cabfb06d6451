-- Vercel's log drains as JSON lines (NDJSON). Requests have an object `proxy`; builds and other entries have none.
-- A request and its function's output may produce several entries with the same requestId; only the first counts.
-- Evidence: https://vercel.com/docs/drains/reference/logs
-- Example: {"projectId":"prj_a","requestId":"r1","proxy":{"timestamp":1772618703000,"method":"GET","host":"go.example.com","path":"/abc","clientIp":"203.0.113.7","statusCode":302,"userAgent":["Mozilla/5.0 (X11)"]}}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, starts_with(line, '[') AS is_array, try(from_json(json_line(line), '{
        "deploymentId": "VARCHAR", "projectId": "VARCHAR", "timestamp": "VARCHAR",
        "host": "VARCHAR", "requestId": "VARCHAR", "proxy": {
            "timestamp": "VARCHAR", "method": "VARCHAR", "host": "VARCHAR", "path": "VARCHAR",
            "userAgent": "JSON", "referer": "VARCHAR", "statusCode": "VARCHAR", "clientIp": "VARCHAR",
            "responseByteSize": "VARCHAR"}}')) AS v
    FROM lines
), parsed AS (
    SELECT number, bytes, is_array, v, v.proxy, checked_request(v.proxy.method, v.proxy.path, '') AS request,
        v.projectId IS NOT NULL OR v.deploymentId IS NOT NULL AS is_entry,
        v.requestId IS NOT NULL AND row_number() OVER (
            PARTITION BY v.requestId, v.proxy IS NULL ORDER BY number) > 1 AS is_repeated
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(proxy.host, v.host, '') AS domain,
    coalesce(proxy.clientIp, '') AS ip,
    '' AS forwarded,
    parse_time(coalesce(proxy.timestamp, v.timestamp)) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(proxy.statusCode) AS status,
    proxy.responseByteSize AS bytes_sent,
    coalesce(proxy.referer, '') AS referrer,
    escape_backslashes(coalesce(json_extract_string(proxy.userAgent, '$[0]'), proxy.userAgent ->> '$')) AS user_agent,
    '' AS country,
    is_entry AND proxy.path IS NOT NULL AND proxy.statusCode IS NOT NULL AND NOT is_repeated
        AND proxy.statusCode <> '-1' AS is_complete,
    CASE WHEN is_array THEN 'a JSON array; write each of its entries on a line of its own'
        WHEN is_entry AND proxy.path IS NULL THEN 'not a request (no proxy)'
        WHEN is_entry AND is_repeated THEN 'another entry of the same request'
        WHEN is_entry AND proxy.statusCode = '-1' THEN 'revalidation in the background, not a request' END
        AS reject_reason,
    FALSE AS is_repaired
FROM parsed

-- Caddy's access log, one JSON object a line. Other loggers, that of errors too, may write into the same file.
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "ts": "VARCHAR", "logger": "VARCHAR", "status": "VARCHAR", "request": {
            "client_ip": "VARCHAR", "remote_ip": "VARCHAR", "method": "VARCHAR", "host": "VARCHAR", "uri": "VARCHAR",
            "headers": {"User-Agent": ["VARCHAR"], "Referer": ["VARCHAR"], "Cf-Ipcountry": ["VARCHAR"]}}}')) AS v
    FROM lines
), told AS (
    SELECT number, bytes, v, v.request, v.request.headers,
        starts_with(coalesce(v.logger, 'http.log.access'), 'http.log.access') AS is_access
    FROM objects
)
SELECT
    number,
    bytes,
    host_of(coalesce(request.host, '')) AS domain,
    coalesce(said(request.client_ip), request.remote_ip, '') AS ip,
    moment(v.ts) AS visited_at,
    request_line(request.method, request.uri) AS request,
    status_of(v.status) AS status,
    coalesce(headers['Referer'][1], '') AS referrer,
    as_logged(headers['User-Agent'][1]) AS user_agent,
    country_of(headers['Cf-Ipcountry'][1]) AS country,
    is_access AND v.ts IS NOT NULL AND v.status IS NOT NULL AND request.uri IS NOT NULL AS is_whole,
    CASE WHEN NOT is_access THEN 'not of the access log, but of another logger' END AS flaw,
    FALSE AS is_mended
FROM told

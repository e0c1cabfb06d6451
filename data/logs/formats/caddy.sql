-- Caddy's access log: JSON lines, or `format console`: time (UTC), level, logger, message and JSON, separated by tabs.
-- Other loggers, such as the error log, may write to the same file.
-- Caddy logs all request headers, so a missing header was not sent, unless `headers` as a whole is filtered out.
-- Evidence: https://caddyserver.com/docs/caddyfile/directives/log
-- Before Caddy 2.5, the address is remote_addr, with a port. Evidence: https://github.com/caddyserver/caddy/pull/4403
-- Example: {"ts":1772618703.5,"request":{"remote_ip":"203.0.113.7","method":"GET","host":"go.example.com","uri":"/abc"},"status":302}
WITH entries AS (
    SELECT number, line, CASE WHEN NOT starts_with(line, '{') THEN string_split(line, chr(9)) END AS console FROM lines
), objects AS (
    SELECT number, strlen(line) AS bytes, console, try(from_json(json_line(coalesce(console[-1], line)), '{
        "ts": "VARCHAR", "logger": "VARCHAR", "status": "VARCHAR", "size": "VARCHAR", "request": {
            "client_ip": "VARCHAR", "remote_ip": "VARCHAR", "remote_addr": "VARCHAR", "method": "VARCHAR",
            "proto": "VARCHAR", "host": "VARCHAR", "uri": "VARCHAR",
            "headers": {"User-Agent": ["VARCHAR"], "Referer": ["VARCHAR"], "Cf-Ipcountry": ["VARCHAR"],
                "X-Forwarded-For": ["VARCHAR"], "X-Forwarded-Proto": ["VARCHAR"],
                "Sec-Fetch-Mode": ["VARCHAR"], "Sec-Fetch-Dest": ["VARCHAR"], "Sec-Fetch-Site": ["VARCHAR"],
                "Sec-Purpose": ["VARCHAR"], "Purpose": ["VARCHAR"], "X-Purpose": ["VARCHAR"], "X-Moz": ["VARCHAR"],
                "X-Firefox-Ai": ["VARCHAR"], "Accept": ["VARCHAR"],
                "Accept-Language": ["VARCHAR"], "Signature-Agent": ["VARCHAR"], "Signature-Input": ["VARCHAR"]},
            "tls": {"version": "VARCHAR"}}}')) AS v
    FROM entries
), parsed AS (
    SELECT number, bytes, v, v.request, v.request.headers,
        checked_request(v.request.method, v.request.uri, v.request.proto) AS checked,
        coalesce(v.ts, replace(console[1], '/', '-')) AS logged_at,
        starts_with(coalesce(v.logger, console[3], 'http.log.access'), 'http.log.access') AS is_access
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(request.host, '') AS domain,
    coalesce(non_empty(request.client_ip), request.remote_ip, address_of(request.remote_addr), '') AS ip,
    coalesce(array_to_string(headers['X-Forwarded-For'], ','), '') AS forwarded,
    parse_time(logged_at) AS visited_at,
    checked.method,
    checked.target,
    checked.protocol,
    status_of(v.status) AS status,
    v.size AS bytes_sent,
    coalesce(headers['Referer'][1], '') AS referrer,
    escape_backslashes(headers['User-Agent'][1]) AS user_agent,
    country_of(headers['Cf-Ipcountry'][1]) AS country,
    CASE WHEN request.tls IS NOT NULL THEN 'https' WHEN request.proto LIKE 'HTTP/1%' THEN 'http' END AS scheme,
    headers['X-Forwarded-Proto'][1] AS forwarded_proto,
    caddy_header(headers, 'Sec-Fetch-Mode') AS fetch_mode,
    caddy_header(headers, 'Sec-Fetch-Dest') AS fetch_dest,
    caddy_header(headers, 'Sec-Fetch-Site') AS fetch_site,
    coalesce(headers['Sec-Purpose'][1], headers['Purpose'][1], headers['X-Purpose'][1], caddy_header(headers, 'X-Moz'))
        AS purpose,
    caddy_header(headers, 'X-Firefox-Ai') AS firefox_ai,
    headers['Accept'][1] AS accept,
    caddy_header(headers, 'Accept-Language') AS accept_language,
    caddy_header(headers, 'Signature-Agent') AS signature_agent,
    caddy_header(headers, 'Signature-Input') AS signature_input,
    is_access AND logged_at IS NOT NULL AND v.status IS NOT NULL AND request.uri IS NOT NULL AS is_complete,
    CASE WHEN NOT is_access THEN 'not an access log entry (another logger)' END AS reject_reason,
    FALSE AS is_repaired
FROM parsed

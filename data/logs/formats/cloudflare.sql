-- Cloudflare's Logpush of HTTP requests, one JSON object a line.
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "EdgeStartTimestamp": "VARCHAR", "EdgeResponseStatus": "VARCHAR", "ClientIP": "VARCHAR",
        "ClientRequestMethod": "VARCHAR", "ClientRequestHost": "VARCHAR", "ClientRequestURI": "VARCHAR",
        "ClientRequestPath": "VARCHAR", "ClientRequestUserAgent": "VARCHAR", "ClientRequestReferer": "VARCHAR",
        "ClientCountry": "VARCHAR"}')) AS v
    FROM lines
)
SELECT
    number,
    bytes,
    host_of(coalesce(v.ClientRequestHost, '')) AS domain,
    coalesce(v.ClientIP, '') AS ip,
    moment(v.EdgeStartTimestamp) AS visited_at,
    request_line(v.ClientRequestMethod, coalesce(said(v.ClientRequestURI), v.ClientRequestPath)) AS request,
    status_of(v.EdgeResponseStatus) AS status,
    coalesce(v.ClientRequestReferer, '') AS referrer,
    as_logged(v.ClientRequestUserAgent) AS user_agent,
    country_of(v.ClientCountry) AS country,
    v.EdgeStartTimestamp IS NOT NULL AND coalesce(said(v.ClientRequestURI), v.ClientRequestPath) IS NOT NULL AS is_whole,
    '' AS flaw,
    FALSE AS is_mended
FROM objects

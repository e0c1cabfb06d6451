-- Cloudflare Logpush, dataset HTTP requests: JSON lines.
-- RequestHeaders has the headers named by custom fields, if they were sent; a missing header is unknown.
-- Evidence: https://developers.cloudflare.com/logs/logpush/logpush-job/custom-fields/
-- Example: {"EdgeStartTimestamp":"2026-03-04T10:05:03Z","ClientIP":"203.0.113.7","ClientRequestHost":"go.example.com","ClientRequestMethod":"GET","ClientRequestURI":"/abc","EdgeResponseStatus":302}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "EdgeStartTimestamp": "VARCHAR", "EdgeResponseStatus": "VARCHAR", "ClientIP": "VARCHAR",
        "ClientRequestMethod": "VARCHAR", "ClientRequestHost": "VARCHAR", "ClientRequestURI": "VARCHAR",
        "ClientRequestPath": "VARCHAR", "ClientRequestUserAgent": "VARCHAR", "ClientRequestReferer": "VARCHAR",
        "ClientRequestProtocol": "VARCHAR", "ClientCountry": "VARCHAR",
        "EdgeResponseBodyBytes": "VARCHAR", "EdgeResponseBytes": "VARCHAR",
        "ClientRequestScheme": "VARCHAR", "BotScore": "VARCHAR", "VerifiedBotCategory": "VARCHAR",
        "ClientIPClass": "VARCHAR", "RequestHeaders": {
            "sec-fetch-mode": "VARCHAR", "sec-fetch-dest": "VARCHAR", "sec-fetch-site": "VARCHAR", "sec-purpose": "VARCHAR",
            "accept": "VARCHAR", "accept-language": "VARCHAR", "signature-agent": "VARCHAR"}}')) AS v
    FROM lines
), parsed AS (
    SELECT *, checked_request(v.ClientRequestMethod, coalesce(non_empty(v.ClientRequestURI), v.ClientRequestPath),
        v.ClientRequestProtocol) AS request
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(v.ClientRequestHost, '') AS domain,
    coalesce(v.ClientIP, '') AS ip,
    '' AS forwarded,
    parse_time(v.EdgeStartTimestamp) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.EdgeResponseStatus) AS status,
    coalesce(v.EdgeResponseBodyBytes, v.EdgeResponseBytes) AS bytes_sent,
    coalesce(v.ClientRequestReferer, '') AS referrer,
    escape_backslashes(v.ClientRequestUserAgent) AS user_agent,
    country_of(v.ClientCountry) AS country,
    v.ClientRequestScheme AS scheme,
    v.BotScore AS bot_score,
    v.VerifiedBotCategory AS verified_bot,
    v.ClientIPClass AS address_class,
    nullif(v.RequestHeaders['sec-fetch-mode'], '') AS fetch_mode,
    nullif(v.RequestHeaders['sec-fetch-dest'], '') AS fetch_dest,
    nullif(v.RequestHeaders['sec-fetch-site'], '') AS fetch_site,
    v.RequestHeaders['sec-purpose'] AS purpose,
    v.RequestHeaders['accept'] AS accept,
    nullif(v.RequestHeaders['accept-language'], '') AS accept_language,
    v.RequestHeaders['signature-agent'] AS signature_agent,
    v.EdgeStartTimestamp IS NOT NULL
        AND coalesce(non_empty(v.ClientRequestURI), v.ClientRequestPath) IS NOT NULL AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM parsed

-- CloudFront logs: W3C extended log format with tab-separated, percent-encoded fields. Real-time logs have no #Fields
-- directive of their own, the query in cs-uri-stem, and the host that was asked for in cs-host; their x-host-header is that
-- of the distribution, as cs(Host) is in standard logs.
-- cs-headers (name:value) and cs-header-names end each header with %0A, and are cut at 800 bytes; cookies may be left out
-- of cs-headers. So a header was not sent only if as many others are listed as cs-headers-count says.
-- Evidence: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/real-time-logs.html
-- Parameter: fields, the last #Fields directive before these lines.
-- Example: #Fields: date time c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent)
-- Example: 2026-03-04	10:05:03	203.0.113.7	GET	go.example.com	/abc	302	Mozilla/5.0%20(X11)
WITH requests AS (
    SELECT *,
        chr(10) || replace(coalesce(header_names || headers, header_names, headers), '%0A', chr(10)) AS listed,
        headers_count = CAST(len(string_split(coalesce(header_names, headers), '%0A')) - 1 AS VARCHAR) AS lists_all
    FROM w3c_fields('lines', $fields, chr(9))
)
SELECT
    number,
    bytes,
    domain,
    ip,
    coalesce(try(url_decode(forwarded)), forwarded) AS forwarded,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(status) AS status,
    bytes_sent,
    referrer,
    escape_backslashes(coalesce(try(url_decode(user_agent)), user_agent)) AS user_agent,
    country,
    scheme,
    listed_value(listed, 'sec-fetch-mode') AS fetch_mode,
    listed_value(listed, 'sec-fetch-dest') AS fetch_dest,
    is_listed(listed, lists_all, 'sec-fetch-[a-z]+') AS fetch_site,
    listed_value(listed, '(?:(?:sec-|x-)?purpose|x-moz)') AS purpose,
    is_listed(listed, lists_all, 'x-firefox-ai') AS firefox_ai,
    listed_value(listed, 'accept') AS accept,
    is_listed(listed, lists_all, 'accept-language') AS accept_language,
    is_listed(listed, lists_all, 'signature-(?:agent|input)') AS signature_agent,
    is_complete,
    reject_reason,
    FALSE AS is_repaired
FROM requests

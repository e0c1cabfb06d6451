-- CloudFront's standard logs: W3C extended with tabs between the fields, which are percent-encoded.
-- Parameter: fields, the last #Fields line before these lines.
SELECT
    number,
    bytes,
    domain,
    ip,
    moment(logged_at) AS visited_at,
    coalesce(request, '') AS request,
    status_of(status) AS status,
    referrer,
    as_logged(coalesce(try(url_decode(user_agent)), user_agent)) AS user_agent,
    country,
    is_whole,
    flaw,
    FALSE AS is_mended
FROM fielded('lines', $fields, chr(9))

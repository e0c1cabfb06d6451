-- W3C extended, as IIS writes it: fields between spaces, and + for a space, so that ++ was a space and a plus.
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
    as_logged(replace(replace(replace(user_agent, '++', ' ' || chr(1)), '+', ' '), chr(1), '+')) AS user_agent,
    country,
    is_whole,
    flaw,
    FALSE AS is_mended
FROM fielded('lines', $fields, ' ')

-- JSON lines of one's own, as the keys of --columns name them. Parameter: paths, of the values in the order of NAMES.
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(json_extract_string(json_line(line), $paths)) AS v FROM lines
), rows AS (
    SELECT number, bytes, own(v) AS told, v IS NOT NULL AS fits FROM objects
)
SELECT
    number,
    bytes,
    own_domain(told) AS domain,
    told.ip,
    told.visited_at,
    request_line(told.method, own_target(told)) AS request,
    told.status,
    told.referrer,
    told.user_agent,
    told.country,
    fits AND own_target(told) <> '' AS is_whole,
    CASE WHEN fits THEN 'no url, and no path that begins with /' END AS flaw,
    FALSE AS is_mended
FROM rows

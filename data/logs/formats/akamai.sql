-- Akamai DataStream 2 as JSON lines. Characters other than printable ASCII are percent-encoded; some streams write + for
-- a space. The property selects the logged headers, so a missing header is unknown.
-- Evidence: https://techdocs.akamai.com/datastream2/docs/data-set-parameters and
-- https://techdocs.akamai.com/datastream2/docs/log-format
-- Example: {"reqTimeSec":"1772618703.000","cliIP":"203.0.113.7","statusCode":"302","reqHost":"go.example.com","reqMethod":"GET","reqPath":"/abc","UA":"Mozilla/5.0%20(X11)"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '{
        "reqTimeSec": "VARCHAR", "cliIP": "VARCHAR", "xForwardedFor": "VARCHAR", "statusCode": "VARCHAR",
        "proto": "VARCHAR", "tlsVersion": "VARCHAR", "reqHost": "VARCHAR", "reqMethod": "VARCHAR",
        "reqPath": "VARCHAR", "queryStr": "VARCHAR", "bytes": "VARCHAR", "totalBytes": "VARCHAR",
        "referer": "VARCHAR", "UA": "VARCHAR",
        "country": "VARCHAR", "accLang": "VARCHAR"}')) AS v
    FROM lines
), parsed AS (
    SELECT *, '/' || ltrim(non_empty(v.reqPath), '/') || coalesce('?' || non_empty(v.queryStr), '') AS target,
        coalesce(CASE WHEN regexp_matches(v.UA, ' |%20') THEN v.UA ELSE replace(v.UA, '+', ' ') END, '') AS agent
    FROM objects
)
SELECT
    number,
    bytes,
    coalesce(non_empty(v.reqHost), '') AS domain,
    coalesce(non_empty(v.cliIP), '') AS ip,
    coalesce(try(url_decode(non_empty(v.xForwardedFor))), '') AS forwarded,
    parse_time(v.reqTimeSec) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(v.statusCode) AS status,
    coalesce(v.bytes, v.totalBytes) AS bytes_sent,
    coalesce(try(url_decode(non_empty(v.referer))), non_empty(v.referer), '') AS referrer,
    escape_backslashes(dash_as_empty(coalesce(try(url_decode(agent)), agent))) AS user_agent,
    country_of(v.country) AS country,
    CASE WHEN lower(v.proto) IN ('http', 'https') THEN lower(v.proto) WHEN non_empty(v.tlsVersion) IS NOT NULL THEN 'https'
        END AS scheme,
    non_empty(v.accLang) AS accept_language,
    v.reqTimeSec IS NOT NULL AND v.statusCode IS NOT NULL AND target IS NOT NULL AS is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(non_empty(v.reqMethod), target, coalesce(v.proto, '')) AS request FROM parsed)

-- Custom CSV (RFC 4180): the first line of the file names the columns. Quoted cells must not contain newlines.
-- Parameters: fields, the names of the fields of a visit; positions, the column of each field (from 1; 0: it has none);
-- width, the number of columns.
-- Example: time,ip,url,status,user_agent
-- Example: 2026-03-04T10:05:03Z,203.0.113.7,https://go.example.com/abc,302,Mozilla/5.0 (X11)
WITH split AS (
    SELECT number, line, CASE WHEN contains(line, '"')
        THEN regexp_extract_all(',' || line, ',("(?:[^"]|"")*"|[^,"]*)', 1) ELSE string_split(line, ',') END AS cells
    FROM lines WHERE number > 1 OR $width = 0
), texts AS (
    SELECT number, line, cells, list_transform($positions, lambda position : unquoted(cells[position])) AS texts
    FROM split
), rows AS (
    SELECT
        number,
        strlen(line) AS bytes,
        parse_reported(texts, $fields) AS parsed,
        len(cells) = $width AND array_to_string(cells, ',') = line AS fits
    FROM texts
)
SELECT
    number,
    bytes,
    reported_domain(parsed) AS domain,
    parsed.ip,
    '' AS forwarded,
    parsed.visited_at,
    request.method,
    request.target,
    request.protocol,
    parsed.status,
    parsed.bytes_sent,
    parsed.referrer,
    parsed.user_agent,
    parsed.country,
    parsed.scheme,
    parsed.fetch_mode,
    parsed.fetch_dest,
    parsed.fetch_site,
    parsed.purpose,
    parsed.accept,
    parsed.accept_language,
    parsed.signature_agent,
    fits AND reported_target(parsed) <> '' AS is_complete,
    CASE WHEN fits THEN 'no url or path that begins with /'
        ELSE 'number of cells differs from the header' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(parsed.method, reported_target(parsed), parsed.protocol) AS request FROM rows)

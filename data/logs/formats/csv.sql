-- CSV of one's own: the file's first line names the columns, RFC 4180 quotes what holds a comma, all on one line.
-- Parameters: fields, the names of the fields of a visit; positions, the column of each, 0 for none; width, the number
-- of columns.
WITH split AS (
    SELECT number, line, CASE WHEN contains(line, '"')
        THEN regexp_extract_all(',' || line, ',("(?:[^"]|"")*"|[^,"]*)', 1) ELSE string_split(line, ',') END AS cells
    FROM lines WHERE number > 1 OR $width = 0
), rows AS (
    SELECT
        number,
        strlen(line) AS bytes,
        parse_reported(list_transform($positions, lambda position : unquoted(cells[position])), $fields) AS parsed,
        len(cells) = $width AND array_to_string(cells, ',') = line AS fits
    FROM split
)
SELECT
    number,
    bytes,
    reported_domain(parsed) AS domain,
    parsed.ip,
    parsed.visited_at,
    request.method,
    request.target,
    request.protocol,
    parsed.status,
    parsed.referrer,
    parsed.user_agent,
    parsed.country,
    fits AND reported_target(parsed) <> '' AS is_complete,
    CASE WHEN fits THEN 'no url or path that begins with /'
        ELSE 'number of cells differs from the header' END AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, checked_request(parsed.method, reported_target(parsed), parsed.protocol) AS request FROM rows)

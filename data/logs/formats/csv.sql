-- CSV of one's own: the file's first line names the columns, RFC 4180 quotes what holds a comma, all on one line.
-- Parameters: places, of the values in the order of NAMES, 0 for none; width, the number of columns.
WITH split AS (
    SELECT number, line, CASE WHEN contains(line, '"')
        THEN regexp_extract_all(',' || line, ',("(?:[^"]|"")*"|[^,"]*)', 1) ELSE string_split(line, ',') END AS cells
    FROM lines WHERE number > 1 OR $width = 0
), rows AS (
    SELECT
        number,
        strlen(line) AS bytes,
        own(list_transform($places, lambda place : unquoted(cells[place]))) AS told,
        len(cells) = $width AND array_to_string(cells, ',') = line AS fits
    FROM split
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
    CASE WHEN fits THEN 'no url, and no path that begins with /'
        ELSE 'not as many cells as the first line names' END AS flaw,
    FALSE AS is_mended
FROM rows

-- The lines in JSON objects written by Docker and log collectors, or JSON after a prefix from syslog, Kubernetes or
-- `docker compose logs`: number, line, and parts, the numbers of the lines that were joined.
-- Docker's json-file splits a line at 16 kB: the text of each entry but the last has no newline at its end. The parts of
-- stdout and stderr may alternate. If no text in a file ends with a newline, each text counts as a whole line.
-- Directives (#Fields:) are not unwrapped, since they are read from the file itself; a text of several lines is not a log line.
-- Parameter: paths, the JSON pointers of the texts; the first that exists is used.
WITH objects AS (
    SELECT number, CASE WHEN starts_with(line, '{') THEN json_line(line) END AS object,
        CASE WHEN NOT starts_with(line, '{') THEN regexp_extract(line, '^[^{"]{1,300}[ \t](\{.*\})$', 1) END AS behind
    FROM lines
), found AS (
    SELECT number, behind, try(json_extract_string(object, $paths)) AS texts, try(json_type(object, $paths)) AS types,
        try(json_keys(object)) AS keys, try(json_extract_string(object, '/stream')) AS stream
    FROM objects
), texts AS (
    SELECT number, coalesce(behind, texts[list_position(types, 'VARCHAR')]) AS text, stream,
        coalesce(list_has_all(keys, ['log', 'stream']) AND list_has_all(['log', 'stream', 'attrs', 'time'], keys), FALSE)
            AS is_docker
    FROM found
), pieces AS (
    SELECT *, is_docker AND NOT ends_with(text, chr(10)) AND bool_or(is_docker AND ends_with(text, chr(10))) OVER ()
        AS goes_on
    FROM texts WHERE text <> ''
), followed AS MATERIALIZED (
    SELECT *, coalesce(lag(goes_on) OVER (PARTITION BY stream ORDER BY number), FALSE) AS is_next FROM pieces
), runs AS (
    SELECT *, sum(CAST(NOT is_next AS INTEGER)) OVER (PARTITION BY stream ORDER BY number) AS run
    FROM followed WHERE goes_on OR is_next
), joined AS (
    SELECT number, text, [number] AS parts FROM followed WHERE NOT goes_on AND NOT is_next
    UNION ALL
    SELECT max(number), string_agg(text, '' ORDER BY number), list(number) FROM runs GROUP BY stream, run
)
SELECT number, line, parts FROM (SELECT number, regexp_replace(text, '[\r\n]+$', '') AS line, parts FROM joined)
WHERE line <> '' AND NOT starts_with(line, '#') AND NOT contains(line, chr(10)) ORDER BY number

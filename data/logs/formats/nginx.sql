-- Lines in a log_format of nginx. Parameters, from line_layout.py: pattern, a regular expression, and names, the names of
-- its groups.
WITH matched AS (
    SELECT number, strlen(line) AS bytes, CAST(regexp_extract(line, $pattern, $names) AS layout_variables) AS v,
        regexp_matches(line, $pattern) AS is_complete
    FROM lines
)
SELECT * FROM nginx_requests('matched')

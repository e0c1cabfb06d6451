-- What each distinct request line asked for; an unreadable one has no method and no path. `place` orders short codes.
-- Parameters: short_code_pattern, probe_pattern.
WITH split AS (
    SELECT number, regexp_extract(request, '^([A-Z]{2,20}) (.*?)(?: HTTP/[0-9.]+)?$', ['method', 'target']) AS line
    FROM request_lines
), aimed AS (
    SELECT
        number,
        line.method AS method,
        CASE WHEN starts_with(line.target, 'http') THEN regexp_replace(line.target, '^https?://[^/?]*', '')
            ELSE line.target END AS target
    FROM split
), parted AS (
    SELECT
        number,
        method,
        CASE WHEN starts_with(target, '/') THEN split_part(target, '?', 1) ELSE '' END AS path,
        CASE WHEN contains(target, '?') AND (contains(target, 'utm_') OR contains(target, 'referrer='))
            THEN substr(target, instr(target, '?') + 1) ELSE '' END AS query
    FROM aimed
), named AS (
    SELECT
        *,
        nullif(regexp_extract(path, $short_code_pattern, 1), '') AS short_code,
        regexp_matches(path, $probe_pattern) AS is_malicious
    FROM parted
)
SELECT method, path, query, short_code, is_malicious, dense_rank() OVER (ORDER BY short_code) AS place
FROM named ORDER BY number

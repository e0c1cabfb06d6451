-- What each readable request asked for, split from its request line; an unreadable one has no method and no path.
CREATE OR REPLACE TEMP TABLE facts AS
WITH split AS (
    SELECT
        * EXCLUDE (request),
        regexp_extract(request, '^([A-Z]{2,20}) (.*?)(?: HTTP/[0-9.]+)?$', ['method', 'target']) AS line
    FROM requests WHERE reason IS NULL
), aimed AS (
    SELECT
        * EXCLUDE (line),
        line.method AS method,
        CASE WHEN starts_with(line.target, 'http') THEN regexp_replace(line.target, '^https?://[^/?]*', '')
            ELSE line.target END AS target
    FROM split
)
SELECT
    number, visited_at, domain, ip, country, method, status, user_agent,
    CASE WHEN starts_with(target, '/') THEN split_part(target, '?', 1) ELSE '' END AS path,
    split_part(split_part(referrer, '#', 1), '?', 1) AS referrer,
    CASE WHEN contains(target, '?') AND (contains(target, 'utm_') OR contains(target, 'referrer=')) THEN substr(target, instr(target, '?') + 1) ELSE '' END AS query
FROM aimed;

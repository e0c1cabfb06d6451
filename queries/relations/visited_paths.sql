-- Visits in scope to each path. Counted from visits, since scanners request millions of paths that no rollup should
-- keep.
CREATE VIEW visited_paths AS
SELECT
    path, bot_category, count(*) AS visits, count(*) FILTER (status BETWEEN 400 AND 499) AS errors_4xx,
    count(*) FILTER (status BETWEEN 500 AND 599) AS errors_5xx, max(visited_at) AS last_visit
FROM visits_in_scope WHERE path <> '' GROUP BY path, bot_category;

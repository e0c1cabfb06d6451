-- The visits in scope on days that no rollup covers; for relations that add the rows of rollups.
CREATE VIEW uncovered_visits AS
SELECT CAST(getvariable('domain') AS VARCHAR) AS for_domain, *
FROM read_visits_in_scope(getvariable('uncovered_files'));

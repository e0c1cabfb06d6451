-- The visits of days that no rollup covers; for relations that add the rows of rollups.
CREATE VIEW uncovered_visits AS
SELECT CAST(getvariable('scope').domain AS VARCHAR) AS for_domain, * FROM read_visits(getvariable('uncovered_files'));

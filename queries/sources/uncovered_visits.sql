-- The visits of days that no rollup covers; for relations that add the rows of rollups.
CREATE VIEW uncovered_visits AS
SELECT getvariable('scope').domain AS for_domain, * FROM read_visits(getvariable('uncovered_files'));

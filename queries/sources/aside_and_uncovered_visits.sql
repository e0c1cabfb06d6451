-- The visits in scope of days that no rollup covers, and those set aside that show what is a link.
CREATE VIEW aside_and_uncovered_visits AS
SELECT CAST(getvariable('domain') AS VARCHAR) AS for_domain, *
FROM read_scope_for_links(getvariable('uncovered_files'));

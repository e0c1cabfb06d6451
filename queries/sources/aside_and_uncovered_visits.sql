-- The visits in scope on days that no rollup covers, and visits set aside or of other groups that show which short
-- codes are links.
CREATE VIEW aside_and_uncovered_visits AS
SELECT CAST(getvariable('domain') AS VARCHAR) AS for_domain, *
FROM read_scope_for_links(getvariable('uncovered_files'));

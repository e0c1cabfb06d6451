-- The visits on days that no rollup covers: every visit for all domains together (for_domain NULL), and again for its
-- own domain, except on days with too many domains. Used to build rollups.
CREATE VIEW visits_by_domain AS
SELECT CAST(NULL AS VARCHAR) AS for_domain, * FROM read_visits(getvariable('uncovered_files'))
UNION ALL
SELECT domain AS for_domain, * FROM read_visits(getvariable('uncovered_files'))
WHERE domain IS NOT NULL AND NOT list_contains(CAST(getvariable('days_without_domains') AS DATE[]), day);

-- visits_by_domain, and the visits set aside that show which short codes are links. Used to build rollups.
CREATE VIEW aside_and_visits_by_domain AS
SELECT CAST(NULL AS VARCHAR) AS for_domain, * FROM read_scope_for_links(getvariable('uncovered_files'))
UNION ALL
SELECT domain AS for_domain, * FROM read_scope_for_links(getvariable('uncovered_files'))
WHERE domain IS NOT NULL AND NOT list_contains(CAST(getvariable('days_without_domains') AS DATE[]), day);

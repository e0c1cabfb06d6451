-- Every visit twice: for all domains together (for_domain NULL) and for its own domain. Used to build rollups.
CREATE VIEW visits_by_domain AS
SELECT CAST(NULL AS VARCHAR) AS for_domain, * FROM read_visits(getvariable('files'))
UNION ALL
SELECT domain AS for_domain, * FROM read_visits(getvariable('files')) WHERE domain IS NOT NULL;

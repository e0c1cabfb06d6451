-- Every visit twice, for all domains together and for its own: while a rollup is made.
CREATE VIEW visits_by_domain AS
SELECT CAST(NULL AS VARCHAR) AS for_domain, * FROM read_visits(getvariable('files'))
UNION ALL
SELECT domain AS for_domain, * FROM read_visits(getvariable('files')) WHERE domain IS NOT NULL;

-- Every visit in scope; for relations that cannot use rollups for this scope.
CREATE VIEW all_visits AS SELECT CAST(getvariable('domain') AS VARCHAR) AS for_domain, * FROM visits_in_scope;

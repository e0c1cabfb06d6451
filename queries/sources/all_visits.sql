-- Every visit in the days of the scope; for relations that cannot use rollups for this scope.
CREATE VIEW all_visits AS SELECT CAST(getvariable('scope').domain AS VARCHAR) AS for_domain, * FROM visits_in_days;

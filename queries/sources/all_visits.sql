-- Every visit in the days of the scope; for relations that cannot use rollups for this scope.
CREATE VIEW all_visits AS SELECT getvariable('scope').domain AS for_domain, * FROM visits_in_days;

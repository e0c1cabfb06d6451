-- The rows and the order of a list. Reads six more session variables: search, unvisited, sorted_by,
-- ascending, skipped and shown. By default, the list has the 100 rows with the most visits.

CREATE MACRO is_listed(text, visits) AS
    (NOT coalesce(getvariable('unvisited'), FALSE) OR visits = 0)
    AND (getvariable('search') IS NULL OR contains(lower(text), lower(getvariable('search'))));

CREATE MACRO sorted_by() AS coalesce(getvariable('sorted_by'), 'visits');
CREATE MACRO is_ascending() AS coalesce(getvariable('ascending'), FALSE);
CREATE MACRO skipped() AS coalesce(getvariable('skipped'), 0);
CREATE MACRO shown() AS coalesce(getvariable('shown'), 100);

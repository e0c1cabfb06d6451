-- A daily relation as a cube keeps it, counted from visits.
SELECT bit_of(day) AS days, * FROM query_table('raw_' || getvariable('relation'));

-- What the relations are made of: visits that are counted now, and rows that were counted ahead. A day is closed when
-- its rows lie in the rollup of its month, for all domains together (for_domain NULL) and for each.
-- It reads four more session variables: rollups (the files, an empty one first), closed_days (the days that may be
-- taken from them), uncovered_files (the visits of all other days, an empty file first) and sources: for each relation
-- the view that it counts visits from, chosen in queries/variables.py. A relation without a source is an error.

CREATE MACRO day_bit(day) AS CAST(1 << (extract(day FROM day) - 1) AS INTEGER);  -- within its month

CREATE VIEW closed_months AS
SELECT CAST(date_trunc('month', day) AS DATE) AS month, bit_or(day_bit(day)) AS days
FROM (SELECT unnest(CAST(getvariable('closed_days') AS DATE[])) AS day)
WHERE day BETWEEN getvariable('scope').start_date AND getvariable('scope').end_date
GROUP BY ALL;

-- What a relation stored of closed days, for every domain, whatever the caller filters for.
CREATE MACRO stored_rows(relation_name) AS TABLE
SELECT rollups.* REPLACE (rollups.days & closed_months.days AS days) FROM read_parquet(
    getvariable('rollups'), hive_partitioning = TRUE, hive_types = {'organization': VARCHAR, 'month': DATE}
) AS rollups JOIN closed_months ON rollups.month = closed_months.month AND rollups.days & closed_months.days <> 0
WHERE relation = relation_name AND organization = getvariable('scope').organization;

-- The two parts of a relation. Together they are every visit in scope once: there are no rows from rollups unless the
-- visits are the uncovered ones.
CREATE MACRO visits_to_count(relation_name) AS TABLE
FROM query_table(struct_extract(getvariable('sources'), relation_name))
WHERE is_in_scope(short_code, domain, bot_category);

CREATE MACRO rollup_rows(relation_name) AS TABLE
FROM stored_rows(relation_name)
WHERE struct_extract(getvariable('sources'), relation_name) = 'uncovered_visits'
    AND for_domain IS NOT DISTINCT FROM getvariable('scope').domain
    AND matches_traffic_type(bot_category, getvariable('scope').traffic_type);

-- What a new rollup stores of a relation: of a daily one what was stored before and, chunk by chunk, what is counted
-- now; of a monthly one both at once, each row with all its days.
CREATE MACRO stored_before(relation_name) AS TABLE
SELECT * EXCLUDE (organization, month, relation) FROM stored_rows(relation_name);

CREATE MACRO counted_daily(relation_name) AS TABLE
SELECT day_bit(day) AS days, * FROM query_table(relation_name);

CREATE MACRO counted_monthly(relation_name) AS TABLE
SELECT * EXCLUDE (days), bit_or(days) AS days
FROM (FROM stored_before(relation_name) UNION ALL BY NAME FROM query_table(relation_name))
GROUP BY ALL;

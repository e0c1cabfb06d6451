-- What the daily and monthly relations are made of. A closed day is counted already: its rows lie in the cube of its
-- month, for all domains together (for_domain NULL) and for each. Whatever a cube does not hold is counted from visits.
-- It reads three more session variables: cubes (where they lie, an empty one first), closed_days (what may be taken
-- from them) and open_files (the visits of all other days, an empty file first).

CREATE MACRO bit_of(day) AS CAST(1 << (extract(day FROM day) - 1) AS INTEGER);  -- within its month

CREATE VIEW closed_months AS
SELECT CAST(date_trunc('month', day) AS DATE) AS month, bit_or(bit_of(day)) AS days
FROM (SELECT unnest(CAST(getvariable('closed_days') AS DATE[])) AS day)
WHERE day BETWEEN getvariable('scope').start_date AND getvariable('scope').end_date
GROUP BY ALL;

CREATE MACRO cubed(relation_name) AS TABLE
SELECT cubes.* REPLACE (cubes.days & closed_months.days AS days) FROM read_parquet(
    getvariable('cubes'), hive_partitioning = TRUE, hive_types = {'organization': VARCHAR, 'month': DATE}
) AS cubes JOIN closed_months ON cubes.month = closed_months.month AND cubes.days & closed_months.days <> 0
WHERE relation = relation_name AND organization = getvariable('scope').organization;

-- Cubes know no links, so that a link's visits are always read: they lie side by side. Only automata know types.
CREATE MACRO closed(relation_name) AS TABLE
FROM cubed(relation_name)
WHERE getvariable('scope').short_code IS NULL AND for_domain IS NOT DISTINCT FROM getvariable('scope').domain;

CREATE VIEW raw_visits AS
SELECT getvariable('scope').domain AS for_domain, * FROM visits_of(
    CASE WHEN getvariable('scope').short_code IS NULL AND getvariable('scope').traffic_type IS NULL
        THEN getvariable('open_files') ELSE getvariable('files') END
) WHERE is_in_scope(short_code, domain, bot_category);

CREATE MACRO counted(relation_name) AS TABLE
(FROM closed(relation_name) WHERE getvariable('scope').traffic_type IS NULL)
UNION ALL BY NAME FROM query_table('raw_' || relation_name);

CREATE VIEW raw_automata AS
SELECT getvariable('scope').domain AS for_domain, * FROM visits_of(
    CASE WHEN getvariable('scope').short_code IS NULL THEN getvariable('open_files') ELSE getvariable('files') END
) WHERE is_in_scope(short_code, domain, bot_category) AND NOT is_human(bot_category);

-- People whom an AI product referred are no automata; they are seen here only when the caller asks for them.
CREATE MACRO counted_automata(relation_name) AS TABLE
FROM (FROM closed(relation_name) UNION ALL BY NAME FROM query_table('raw_' || relation_name))
WHERE is_of_type(bot_category, getvariable('scope').traffic_type)
    AND (NOT is_referral(bot_category) OR getvariable('scope').traffic_type IS NOT NULL);

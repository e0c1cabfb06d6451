-- The two parts of a relation: visits that are counted now, and precomputed rows of rollups. A day is
-- closed when the rollup of its month contains its rows, for all domains together (for_domain NULL) and for each one.
-- Reads five more session variables: rollups (the files, an empty one first), closed_months (the days to take from
-- them, as bits of each month), uncovered_files (the visits of all other days, an empty file first) and sources: for each
-- relation the view that it counts visits from, chosen in queries/snapshot.py. A relation without a source is an error.
-- The fifth is in_memory, set if several answers share input: the relations with all rows in <relation>_in_memory.

CREATE MACRO day_bit(day) AS CAST(1 << (extract(day FROM day) - 1) AS INTEGER);  -- bit 0 is the first of the month

CREATE MACRO closed_days_of(month) AS  -- as bits; NULL if none is closed
    map_from_entries(CAST(getvariable('closed_months') AS STRUCT(month DATE, days INTEGER)[]))[month];

-- The stored rows of a relation for closed days, for every domain and without the filters of the scope.
CREATE MACRO stored_rows(relation_name) AS TABLE
SELECT * REPLACE (days & closed_days_of(month) AS days) FROM read_parquet(
    getvariable('rollups'), hive_partitioning = TRUE, hive_types = {'organization': VARCHAR, 'month': DATE}
)
WHERE relation = relation_name AND organization = getvariable('scope').organization AND days & closed_days_of(month) <> 0;

-- The two parts of a relation. Together they count every visit in scope exactly once: rollup_rows is empty unless
-- visits_to_count reads only the uncovered days, from their files or from memory.
CREATE MACRO counts_uncovered(relation_name) AS
    struct_extract(getvariable('sources'), relation_name) IN ('uncovered_visits', 'uncovered_visits_in_memory');

CREATE MACRO visits_to_count(relation_name) AS TABLE
FROM query_table(struct_extract(getvariable('sources'), relation_name));

-- Like visits_to_count, but from the relation's own view in sources/ if needed.
CREATE MACRO visits_to_count_from(relation_name, own_visits, is_needed) AS TABLE
FROM query_table(CASE WHEN is_needed THEN own_visits ELSE struct_extract(getvariable('sources'), relation_name) END);

-- Like visits_to_count, with visits set aside that show which short codes are links; is_counted distinguishes them.
CREATE MACRO visits_to_count_with_aside(relation_name) AS TABLE
FROM query_table('aside_and_' || struct_extract(getvariable('sources'), relation_name));

-- The same without a filter by a word; otherwise the visits of visits_with_known_answers.
CREATE MACRO visits_to_count_with_answers(relation_name) AS TABLE
FROM query_table(
    CASE WHEN has_word() THEN 'visits_with_known_answers'
        ELSE 'aside_and_' || struct_extract(getvariable('sources'), relation_name) END);

CREATE MACRO rollup_rows(relation_name) AS TABLE
FROM stored_rows(relation_name)
WHERE counts_uncovered(relation_name)
    AND for_domain IS NOT DISTINCT FROM getvariable('domain')
    AND matches_traffic_type(bot_category, getvariable('traffic_type'))
    AND (bot_category IS NULL OR matches_traffic_group(bot_category, getvariable('traffic_group')));

-- Whether visits of a group are in scope: relations without a category count the visits of one group.
CREATE MACRO has_group(traffic_group) AS coalesce(getvariable('traffic_group') = traffic_group, TRUE);

-- The count of the group in scope: people, AI, bots, or all.
CREATE MACRO of_group(people, ai, bots, every) AS CASE getvariable('traffic_group')
    WHEN 'people' THEN people WHEN 'ai' THEN ai WHEN 'bots' THEN bots ELSE every END;

-- The stored rows of a relation that has no category and counts the visits and visitors of each group. If it counts
-- people only, it has no numbers for other groups.
CREATE MACRO rows_of_group(relation_name) AS TABLE
FROM (
    SELECT * REPLACE (
        of_group(
            human_clicks + ai_referrals, coalesce(ai_visits, ai_referrals), coalesce(other_visits, 0), visits
        ) AS visits,
        of_group(human_clicks, 0, 0, human_clicks) AS human_clicks,
        of_group(ai_referrals, ai_visits, 0, ai_visits) AS ai_visits,
        of_group(ai_referrals, ai_referrals, 0, ai_referrals) AS ai_referrals,
        of_group(0, 0, other_visits, other_visits) AS other_visits,
        of_group(
            coalesce(people_visitors, unique_visitors), coalesce(ai_visitors, referred_visitors), bot_visitors,
            unique_visitors
        ) AS unique_visitors,
        of_group(people_visitors, referred_visitors, 0, people_visitors) AS people_visitors,
        of_group(referred_visitors, ai_visitors, 0, ai_visitors) AS ai_visitors,
        of_group(referred_visitors, referred_visitors, 0, referred_visitors) AS referred_visitors,
        of_group(0, 0, bot_visitors, bot_visitors) AS bot_visitors,
        of_group(unidentified_visits, unidentified_referrals, 0, unidentified_visits) AS unidentified_visits,
        of_group(greatest(last_human, last_referral), greatest(last_referral, last_fetch), last_bot, last_visit)
            AS last_visit,
        of_group(last_human, NULL, NULL, last_human) AS last_human,
        of_group(last_referral, last_referral, NULL, last_referral) AS last_referral,
        of_group(NULL, last_fetch, NULL, last_fetch) AS last_fetch,
        of_group(NULL, NULL, last_bot, last_bot) AS last_bot
    )
    FROM rollup_rows(relation_name)
)
WHERE getvariable('traffic_group') IS NULL OR visits > 0 OR is_answered AND short_code IS NOT NULL;

CREATE MACRO is_in_memory(relation_name) AS list_contains(CAST(getvariable('in_memory') AS VARCHAR[]), relation_name);

-- The rows of a relation, from memory if they are there.
CREATE MACRO shared(relation_name) AS TABLE
FROM query_table(CASE WHEN is_in_memory(relation_name) THEN relation_name || '_in_memory' ELSE relation_name END);

-- The views that a relation consists of, <relation>_counted and <relation>_stored. A view without rows for this scope is
-- left out: planning it would take longer than reading the other. The first of the files is the empty one.
CREATE MACRO parts_of(relation_name) AS CASE
    WHEN is_in_memory(relation_name) THEN [relation_name || '_in_memory']
    WHEN NOT counts_uncovered(relation_name) OR len(getvariable('closed_months')) = 0
    THEN [relation_name || '_counted']
    WHEN len(getvariable('uncovered_files')['paths']) = 1 THEN [relation_name || '_stored']
    ELSE [relation_name || '_counted', relation_name || '_stored'] END;

-- The rows of a relation for a new rollup. Daily relation: the rows stored before, then newly counted rows, chunk by
-- chunk. Monthly relation: both in one query, so that each row has the bits of all its days.
CREATE MACRO stored_before(relation_name) AS TABLE
SELECT * EXCLUDE (organization, month, relation) FROM stored_rows(relation_name);

CREATE MACRO counted_daily(relation_name) AS TABLE
SELECT day_bit(day) AS days, * FROM query_table(relation_name);

CREATE MACRO counted_monthly(relation_name) AS TABLE
SELECT * EXCLUDE (days), bit_or(days) AS days
FROM (FROM stored_before(relation_name) UNION ALL BY NAME FROM query_table(relation_name))
GROUP BY ALL;

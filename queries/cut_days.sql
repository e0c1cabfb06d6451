-- The days of high cardinality on which values may be cut. Cutting is slow, and rollups show for most days that nothing
-- was cut: for a cut day, a relation has at least as many rows as values are kept.
WITH cut AS (
    SELECT day FROM read_parquet(
        getvariable('rollups'), hive_partitioning = TRUE, hive_types = {'organization': VARCHAR, 'month': DATE}
    )
    WHERE organization = getvariable('scope').organization AND for_domain IS NULL
        AND relation IN ('daily_agents', 'daily_campaigns', 'daily_domains', 'daily_referrers')
    GROUP BY relation, day HAVING count(*) >= max_values_per_day()
)
SELECT day FROM (SELECT unnest(CAST(getvariable('high_cardinality_days') AS DATE[])) AS day)
WHERE day IN (FROM cut) OR NOT list_contains(CAST($counted_days AS DATE[]), day)
ORDER BY day;

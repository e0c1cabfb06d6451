-- The days in rollups of which a relation may have been cut: a cut one has as many rows as words are kept, or more.
SELECT DISTINCT day
FROM (
    SELECT day FROM read_parquet(
        getvariable('rollups'), hive_partitioning = TRUE, hive_types = {'organization': VARCHAR, 'month': DATE}
    )
    WHERE organization = getvariable('scope').organization AND for_domain IS NULL
        AND relation IN ('daily_agents', 'daily_campaigns', 'daily_domains', 'daily_referrers')
    GROUP BY relation, day HAVING count(*) >= max_values_per_day()
);

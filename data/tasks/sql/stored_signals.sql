-- How many visits of some files landed as people's, by their signals. Parameter: files.
SELECT bot_category IN ('human', 'ai_referral') AS is_person, coalesce(signals, 0) AS signals, count(*) AS visits
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) GROUP BY ALL

-- The number of visits in some files, by their signals and whether they landed as visits by people. Parameter: files.
SELECT bot_category IN ('human', 'ai_referral') AS is_person, coalesce(signals, 0) AS signals, count(*) AS visits
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) GROUP BY ALL

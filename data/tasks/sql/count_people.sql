-- The number of counted visits in some files, and how many of them are by people.
-- Parameters: files, aside (any of these bits sets a visit aside), convicting (any of these bits marks a bot in disguise).
SELECT count(*), count(*) FILTER (bot_category = 'human' AND coalesce(signals, 0) & $convicting = 0)
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE coalesce(signals, 0) & $aside = 0

-- How many visits of some files are counted, and how many of them are people's.
-- Parameters: files, aside (bits of which one sets a visit aside), convicting (bits of which one disguises a bot).
SELECT count(*), count(*) FILTER (bot_category = 'human' AND coalesce(signals, 0) & $convicting = 0)
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE coalesce(signals, 0) & $aside = 0

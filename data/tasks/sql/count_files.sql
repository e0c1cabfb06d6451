-- How many visits of some files of the lake there are, and how many are files. Parameters: files, bit.
SELECT count(*), count(*) FILTER (coalesce(signals, 0) & $bit <> 0)
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)

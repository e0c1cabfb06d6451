-- The visits of several files of one organization and day, sorted as in one file. Parameter: files.
SELECT * FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) ORDER BY short_code, visited_at

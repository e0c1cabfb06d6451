-- A sample of the keys of merged_range, sorted. Parameters: files, none.
SELECT coalesce(short_code, $none) AS short_code, visited_at::TEXT AS visited_at
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
USING SAMPLE reservoir(10000 ROWS) REPEATABLE (1)
ORDER BY ALL

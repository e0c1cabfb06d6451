-- The other visits of that file, in the order they had. Parameter: files.
SELECT * EXCLUDE (file_row_number)
FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE) ANTI JOIN erased USING (file_row_number)
ORDER BY file_row_number

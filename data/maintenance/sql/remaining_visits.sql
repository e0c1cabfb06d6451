-- The visits of a file that are not in erased_rows, in their stored order. Parameter: files.
SELECT * EXCLUDE (file_row_number)
FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE) ANTI JOIN erased_rows USING (file_row_number)
ORDER BY file_row_number

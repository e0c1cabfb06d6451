-- The visits of a file that are not in erased_rows, in their stored order. Parameter: file.
SELECT * EXCLUDE (file_row_number)
FROM read_parquet($file, file_row_number := TRUE, hive_partitioning := FALSE) ANTI JOIN erased_rows USING (file_row_number)
ORDER BY file_row_number

-- The other visits of that file, in the order they had. Parameter: file.
SELECT * EXCLUDE (file_row_number)
FROM read_parquet($file, file_row_number := TRUE, hive_partitioning := FALSE) ANTI JOIN erased USING (file_row_number)
ORDER BY file_row_number

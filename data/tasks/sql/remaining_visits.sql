-- The visits in some rows of a file that are not in erased_rows, in their stored order.
-- Parameters: files, first_row, end_row (excluded; rows count from 0).
SELECT * EXCLUDE (file_row_number)
FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE)
ANTI JOIN erased_rows USING (file_row_number)
WHERE file_row_number >= $first_row AND file_row_number < $end_row
ORDER BY file_row_number

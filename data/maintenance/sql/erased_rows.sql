-- The row numbers of the visits of one file that meet every criterion; a criterion that is null was not given.
-- Parameters: files, short_code, domain, visitor.
CREATE OR REPLACE TEMP TABLE erased_rows AS
SELECT file_row_number FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE (CAST($short_code AS VARCHAR) IS NULL OR short_code = $short_code)
    AND (CAST($domain AS VARCHAR) IS NULL OR lower(domain) = lower($domain))
    AND (CAST($visitor AS UBIGINT) IS NULL OR visitor = CAST($visitor AS UBIGINT))

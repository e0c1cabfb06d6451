-- The row numbers of the visits of one file that match all criteria; a null criterion matches every visit.
-- Parameters: files, short_code, domain, no_domain (true: only visits without a domain), visitor.
CREATE OR REPLACE TEMP TABLE erased_rows AS
SELECT file_row_number FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE (CAST($short_code AS VARCHAR) IS NULL OR short_code = $short_code)
    AND (CAST($domain AS VARCHAR) IS NULL OR domain = $domain)
    AND (CAST($no_domain AS BOOLEAN) IS NULL OR (domain IS NULL) = CAST($no_domain AS BOOLEAN))
    AND (CAST($visitor AS BIGINT) IS NULL OR visitor = CAST($visitor AS BIGINT))

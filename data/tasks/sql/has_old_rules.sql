-- True if a file contains a visit classified by another version of the rules. Parameters: files, rules_version.
SELECT count(*) > 0
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE rules_version IS DISTINCT FROM $rules_version

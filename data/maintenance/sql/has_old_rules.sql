-- Whether a file holds a visit that another version of the rules classified. Parameters: files, rules_version.
SELECT count(*) > 0 FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) WHERE rules_version IS DISTINCT FROM $rules_version

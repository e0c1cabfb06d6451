-- Whether a file holds a visit that another version of the rules classified. Parameters: file, rules_version.
SELECT count(*) > 0 FROM read_parquet($file) WHERE rules_version IS DISTINCT FROM $rules_version

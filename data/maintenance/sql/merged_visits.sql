-- The visits of several files of one partition, sorted for one file, from one key of merge_keys up to the next.
-- Parameters: files, first_key, end_key (not included). NULL: without this bound.
SELECT * FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE ($first_key IS NULL
        OR create_sort_key(short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST') >= $first_key::BLOB)
    AND ($end_key IS NULL
        OR create_sort_key(short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST') < $end_key::BLOB)
ORDER BY short_code, visited_at

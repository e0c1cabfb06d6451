-- The visits of files, sorted by their output file, from one key of merge_keys up to the next.
-- Parameters: files, outputs (the output of each file), first_key, end_key (excluded). NULL: no bound.
SELECT *, $outputs[1 + CAST(file_index AS BIGINT)] AS output
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE ($first_key IS NULL
        OR create_sort_key(output, 'ASC NULLS LAST', short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST')
            >= $first_key::BLOB)
    AND ($end_key IS NULL
        OR create_sort_key(output, 'ASC NULLS LAST', short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST')
            < $end_key::BLOB)
ORDER BY output, short_code, visited_at

-- A sorted sample of the keys by which merged_visits sorts, each as one binary value. Parameters: files, outputs.
SELECT
    $outputs[1 + CAST(file_index AS BIGINT)] AS output,
    create_sort_key(output, 'ASC NULLS LAST', short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST') AS key
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
USING SAMPLE reservoir(10000 ROWS) REPEATABLE (1)
ORDER BY key

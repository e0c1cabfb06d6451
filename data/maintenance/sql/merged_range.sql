-- Those of merged_visits from one key up to the next: a key is a short code (the largest text for none) and a time, as
-- text. Parameters: files, none, first_code, first_time, end_code, end_time.
SELECT * FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE (coalesce(short_code, $none) > $first_code
       OR coalesce(short_code, $none) = $first_code AND visited_at >= $first_time::TIMESTAMPTZ)
    AND (coalesce(short_code, $none) < $end_code
         OR coalesce(short_code, $none) = $end_code AND visited_at < $end_time::TIMESTAMPTZ)
ORDER BY short_code, visited_at

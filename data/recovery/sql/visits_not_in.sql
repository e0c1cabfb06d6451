-- The visits of a file that are not in other files, in the order of a visit file; each visit is left out as often as it
-- is in the other files. Only values from the log are compared, not results of rules, salts or options.
-- Parameters: files, other_files (may be empty).
WITH visits AS (
    SELECT *, row(visited_at, domain, path, method, status, protocol, bytes_sent, user_agent, referrer) AS logged,
        row_number() OVER (PARTITION BY logged) AS occurrence
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
),
others AS (
    SELECT row(visited_at, domain, path, method, status, protocol, bytes_sent, user_agent, referrer) AS logged,
        row_number() OVER (PARTITION BY logged) AS occurrence
    FROM read_parquet($files || CAST($other_files AS VARCHAR[]), hive_partitioning := FALSE, union_by_name := TRUE,
        filename := 'read_from')
    WHERE list_contains(CAST($other_files AS VARCHAR[]), read_from)
)
SELECT * EXCLUDE (logged, occurrence) FROM visits ANTI JOIN others USING (logged, occurrence)
ORDER BY short_code, visited_at

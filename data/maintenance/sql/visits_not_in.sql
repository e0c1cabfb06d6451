-- How many visits of one file are not in another, each counted as often as it occurs. What rules decide is not compared.
-- Parameters: files, other_files.
SELECT count(*) FROM (
    SELECT visited_at, domain, short_code, path, method, status, user_agent, country, referrer, visitor
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    EXCEPT ALL
    SELECT visited_at, domain, short_code, path, method, status, user_agent, country, referrer, visitor
    FROM read_parquet($other_files, hive_partitioning := FALSE, union_by_name := TRUE)
)

-- Each day's visitors who may have a signal, with the seconds from their first to their last visit: all visitors that
-- judged_visitors.sql must examine, with all their visits if is_wide. A signal with a threshold below these would
-- never be found.
-- Parameters: files, days, bits.
CREATE OR REPLACE TEMP TABLE suspects AS
SELECT
    $days[1 + CAST(file_index AS BIGINT)] AS day, visitor,
    date_diff('second', min(visited_at), max(visited_at)) AS seconds,
    count(*) FILTER (status IN (404, 410)) >= 4 OR count(*) >= 30 AND seconds <= 3 * count(*)
    OR count(*) FILTER (status IN (405, 501)) >= 2 AS is_wide
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE visitor IS NOT NULL
GROUP BY day, visitor
HAVING is_wide OR bool_or(coalesce(is_malicious, FALSE) OR coalesce(signals, 0) & $bits.attacked <> 0)

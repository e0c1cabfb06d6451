-- The visitors of a day's domain whose browser is stale and who loaded no image, style, script or font, where others do
-- (loading_agents).
-- Parameters: files, days, file_pattern.
CREATE OR REPLACE TEMP TABLE stale_visitors AS
WITH visits AS (
    SELECT *, $days[1 + CAST(file_index AS BIGINT)] AS day
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
)
SELECT loading_agents.site, visits.visitor
FROM visits
JOIN loading_agents ON loading_agents.site = hash(visits.day, coalesce(visits.domain, ''))
    AND loading_agents.agent = hash(visits.user_agent)
JOIN old_agents ON old_agents.agent = loading_agents.agent AND old_agents.stale_since <= visits.day
WHERE visits.visitor IS NOT NULL
GROUP BY ALL HAVING count(*) FILTER (contains(path, '.') AND regexp_matches(path, $file_pattern)) = 0

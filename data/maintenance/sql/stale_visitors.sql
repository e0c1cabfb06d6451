-- The visitors of a domain whose browser is stale and who loaded no image, style, script or font, where others do
-- (loading_agents).
-- Parameters: files, asset_pattern.
CREATE OR REPLACE TEMP TABLE stale_visitors AS
SELECT loading_agents.domain, visits.visitor
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) AS visits
JOIN loading_agents ON loading_agents.domain = coalesce(visits.domain, '')
    AND loading_agents.agent = hash(visits.user_agent)
SEMI JOIN stale_agents ON stale_agents.agent = loading_agents.agent
WHERE visits.visitor IS NOT NULL
GROUP BY ALL HAVING count(*) FILTER (contains(path, '.') AND regexp_matches(path, $asset_pattern)) = 0

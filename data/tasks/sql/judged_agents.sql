-- What people's user agents, by their hash, loaded of each domain in a day: of the domains where five and more of them
-- load as many images, styles, scripts and fonts as pages, or more. Domain and day are one hash.
-- Parameters: files, days, file_pattern.
CREATE OR REPLACE TEMP TABLE loading_agents AS
WITH agents AS (
    SELECT
        hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, '')) AS site, hash(user_agent) AS agent,
        count(*) FILTER (contains(path, '.') AND regexp_matches(path, $file_pattern)) AS assets,
        count(*) - assets AS pages
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE bot_category IN ('human', 'ai_referral') AND user_agent IS NOT NULL
    GROUP BY ALL
), sites AS (
    SELECT site FROM agents WHERE assets > 0
    GROUP BY site HAVING count(*) >= 5 AND sum(assets) >= sum(pages)
)
SELECT site, agent, assets, pages FROM agents SEMI JOIN sites USING (site)

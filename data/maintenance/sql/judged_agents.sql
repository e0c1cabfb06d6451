-- What people's user agents, by their hash, loaded of each domain in one day: of the domains where five and more of them
-- load as many images, styles, scripts and fonts as pages, or more.
-- Parameters: files, asset_pattern.
CREATE OR REPLACE TEMP TABLE loading_agents AS
WITH agents AS (
    SELECT
        coalesce(visits.domain, '') AS domain, hash(user_agent) AS agent,
        count(*) FILTER (contains(path, '.') AND regexp_matches(path, $asset_pattern)) AS assets,
        count(*) - assets AS pages
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) AS visits
    WHERE bot_category IN ('human', 'ai_referral') AND user_agent IS NOT NULL
    GROUP BY ALL
), sites AS (
    SELECT domain FROM agents WHERE assets > 0
    GROUP BY domain HAVING count(*) >= 5 AND sum(assets) >= sum(pages)
)
SELECT domain, agent, assets, pages FROM agents SEMI JOIN sites USING (domain)

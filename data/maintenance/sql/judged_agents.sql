-- The user agents, by their hash, that opened twenty and more pages of a domain in one day and loaded with ten pages less
-- than one image, style, script or font, where ten others load as many of these as pages, or more.
-- Parameters: files, asset_pattern.
CREATE OR REPLACE TEMP TABLE bare_agents AS
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
    GROUP BY domain HAVING count(*) >= 10 AND sum(assets) >= sum(pages)
)
SELECT domain, agent FROM agents SEMI JOIN sites USING (domain) WHERE pages >= 20 AND 10 * assets < pages

-- Signals of a day's visitors from hosting networks, by domain, who behave unlike people: they opened pages without
-- the files that three user agents (site_agents) load there; opened one page, perhaps after a redirect; were served no
-- page and no link, and loaded nothing; or three or more of them share a user agent, with about one page each and
-- without files, on a domain with files in its log. Icons of the site do not count. The network alone is not evidence:
-- companies and remote desktops use it, too. Day and domain are one hash.
-- Parameters: files, days, file_pattern, bits (the bit of each signal, by name).
CREATE OR REPLACE TEMP TABLE hosting_visitors AS
WITH visits AS (
    SELECT
        *, hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, '')) AS site,
        is_file(path, $file_pattern) AS is_asset,
        is_icon(path) AS is_icon
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE visitor IS NOT NULL AND user_agent IS NOT NULL AND signals & $bits.from_hosting <> 0
        AND bot_category IN ('human', 'ai_referral')
), visitors AS (
    SELECT
        site, visitor, any_value(hash(user_agent)) AS agent, count(*) AS requests,
        count(*) FILTER (NOT is_asset) AS pages,
        bool_or(is_asset AND NOT is_icon) AS loads,
        bool_or(NOT is_asset AND is_served(status)) AS is_served,
        bool_or(is_click(short_code, status)) AS has_clicked,
        bool_or(short_code IS NOT NULL) AS has_code
    FROM visits GROUP BY site, visitor
), sites AS (
    SELECT site, count(*) FILTER (parts >= 2) >= 3 AS loads, bool_or(parts > 0) AS has_files
    FROM site_agents GROUP BY site
), fleets AS (
    SELECT site, agent
    FROM visitors JOIN site_agents USING (site, agent)
    WHERE parts = 0 AND NOT site_agents.has_clicked
    GROUP BY site, agent, site_agents.requests
    HAVING count(*) >= 3 AND 2 * sum(visitors.pages) < 3 * count(*) AND site_agents.requests <= 2 * sum(visitors.requests)
), judged AS (
    SELECT
        visitors.site, visitor,
        CASE WHEN is_served AND NOT visitors.loads AND sites.loads THEN $bits.hosting_bare ELSE 0 END
        | CASE WHEN is_served AND pages <= 2 AND NOT (visitors.loads OR has_code) THEN $bits.hosting_single ELSE 0 END
        | CASE WHEN NOT (is_served OR has_clicked OR visitors.loads) THEN $bits.hosting_unserved ELSE 0 END
        | CASE WHEN has_files AND fleets.agent IS NOT NULL THEN $bits.hosting_fleet ELSE 0 END AS signals
    FROM visitors JOIN sites USING (site) LEFT JOIN fleets USING (site, agent)
)
SELECT site, visitor, CAST(signals AS BIGINT) AS signals FROM judged WHERE signals <> 0

-- The requests of people's user agents, by their hash, for each domain and day: the numbers of pages, of files (images,
-- stylesheets, scripts and fonts), and of files that are parts of a page, which icons of the site are not; whether any
-- page was served; whether a page and a part came by HTTP/2 or 3; and whether a page was served by HTTP/1. Domain and
-- day are one hash.
-- Parameters: files, days, file_pattern.
CREATE OR REPLACE TEMP TABLE site_agents AS
WITH visits AS (
    SELECT
        hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, '')) AS site, hash(user_agent) AS agent,
        is_file(path, $file_pattern) AS is_asset,
        is_icon(path) AS is_icon,
        is_click(short_code, status) AS is_click,
        is_served(status) AS is_ok,
        protocol >= 'HTTP/2' AS is_new
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE bot_category IN ('human', 'ai_referral') AND user_agent IS NOT NULL
)
SELECT
    site, agent, count(*) AS requests, count(*) FILTER (is_asset) AS assets, requests - assets AS pages,
    count(*) FILTER (is_asset AND NOT is_icon) AS parts, bool_or(is_click) AS has_clicked,
    bool_or(is_ok AND NOT is_asset) AS is_served,
    bool_or(is_new AND is_asset AND NOT is_icon) AND bool_or(is_new AND is_ok AND NOT is_asset) AS is_modern,
    bool_or(NOT is_new AND is_ok AND NOT is_asset) AS has_old_page
FROM visits GROUP BY site, agent

-- What people's user agents, by their hash, asked of each domain in a day: pages, and images, styles, scripts and fonts, of
-- which icons of the site are no part of a page, and whether any page was served. Domain and day are one hash.
-- Parameters: files, days, file_pattern.
CREATE OR REPLACE TEMP TABLE site_agents AS
WITH visits AS (
    SELECT
        hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, '')) AS site, hash(user_agent) AS agent,
        CASE WHEN contains(path, '.') THEN regexp_matches(path, $file_pattern) ELSE FALSE END AS is_asset,
        contains(path, 'favicon') OR contains(path, 'apple-touch-icon') AS is_icon,
        coalesce(short_code IS NOT NULL AND status BETWEEN 300 AND 399 AND status <> 304, FALSE) AS is_click,
        coalesce(status BETWEEN 200 AND 299 OR status = 304, FALSE) AS is_ok
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE bot_category IN ('human', 'ai_referral') AND user_agent IS NOT NULL
)
SELECT
    site, agent, count(*) AS requests, count(*) FILTER (is_asset) AS assets, requests - assets AS pages,
    count(*) FILTER (is_asset AND NOT is_icon) AS parts, bool_or(is_click) AS has_clicked,
    bool_or(is_ok AND NOT is_asset) AS is_served
FROM visits GROUP BY site, agent

-- Signals of a day's visitors, by domain, whose browser is old (old_agents) and who behave unlike people: a stale
-- browser loaded no image, stylesheet, script or font where others do (loading_agents); a late browser that updates
-- itself opened a page without such files, where browsers load them with it; or a late browser was served no page and no
-- file of a page, where others are served pages. Files are of a page if their visitor requested a page there, or if one
-- has a referrer. Visitors who follow a link, request a missing link or get a server error are not convicted, nor are
-- visitors who are served elsewhere that day: a domain may only redirect. Icons of the site do not count, except for
-- stale browsers. Domains that serve no page and are not in loading_agents are skipped, so that links cost next to
-- nothing. Day and domain are one hash.
-- Parameters: files, days, file_pattern, bits (the bit of each signal, by name).
CREATE OR REPLACE TEMP TABLE old_visitors AS
WITH sites AS (
    SELECT site, bool_or(parts > 0 AND pages > 0) AS loads, bool_or(is_served) AS serves
    FROM site_agents GROUP BY site HAVING serves OR site IN (SELECT site FROM loading_agents)
), browsers AS (
    SELECT site, agent, late_since, stale_since, updates_itself, sites.loads, serves FROM site_agents
    JOIN sites USING (site) JOIN old_agents USING (agent)
), visits AS (
    SELECT
        $days[1 + CAST(file_index AS BIGINT)] AS day, browsers.*, visits.visitor, path, status, short_code,
        referrer
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) AS visits
    JOIN browsers ON browsers.site = hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, ''))
        AND browsers.agent = hash(user_agent)
    WHERE visits.visitor IS NOT NULL AND bot_category IN ('human', 'ai_referral')
), requests AS (
    SELECT
        *, is_file(path, $file_pattern) AS is_asset,
        is_icon(path) AS is_icon
    FROM visits WHERE late_since <= day
), visitors AS (
    SELECT
        day, site, visitor, agent, updates_itself, loads, serves, coalesce(stale_since <= day, FALSE) AS is_stale,
        bool_or(is_asset) AS has_assets, bool_or(is_asset AND NOT is_icon) AS has_loaded,
        has_loaded AND bool_or(NOT is_asset OR referrer IS NOT NULL) AS has_loaded_for_page,
        bool_or(NOT is_asset AND is_served(status)) AS is_served,
        bool_or(is_click(short_code, status)) AS has_clicked,
        coalesce(bool_or(short_code IS NOT NULL AND status IN (404, 410) OR status >= 500), FALSE) AS is_excused
    FROM requests GROUP BY ALL
), judged AS (
    SELECT
        site, visitor,
        CASE WHEN is_stale AND NOT has_assets AND loading_agents.agent IS NOT NULL THEN $bits.stale ELSE 0 END
        | CASE WHEN updates_itself AND is_served AND NOT (has_loaded OR has_clicked) AND loads
            THEN $bits.superseded_bare ELSE 0 END
        | CASE WHEN serves AND NOT (has_loaded_for_page OR has_clicked OR is_excused)
                AND NOT bool_or(is_served) OVER (PARTITION BY day, visitor)
            THEN $bits.superseded_unserved ELSE 0 END AS signals
    FROM visitors LEFT JOIN loading_agents USING (site, agent)
)
SELECT site, visitor, CAST(signals AS BIGINT) AS signals FROM judged WHERE signals <> 0

-- Signals of a day's visitors, by domain, whose browser supports HTTP/2 over TLS (fetching_agents), but who used only
-- HTTP/1 there: they opened a page without files, and without the icon of the site, which companies' gateways pass on
-- even if they cache files. On this domain and day, at least three user agents, and nine in ten of all that load pages
-- and files, load both by HTTP/2 or 3. If a server logs pages behind a proxy as HTTP/1, and files as HTTP/2, no user
-- agent does. Pages by plain HTTP do not count, nor do pages that were not sent (304). Domains without such user agents
-- are skipped, so that logs without HTTP/2 cost next to nothing. Day and domain are one hash.
-- Parameters: files, days, file_pattern, bits (the bit of each signal, by name).
CREATE OR REPLACE TEMP TABLE old_protocol_visitors AS
WITH sites AS (
    SELECT site, count(*) FILTER (is_modern) AS modern FROM site_agents
    WHERE parts > 0 AND is_served GROUP BY site HAVING modern >= 3 AND 10 * modern >= 9 * count(*)
), browsers AS (
    SELECT site, agent FROM site_agents SEMI JOIN sites USING (site) SEMI JOIN fetching_agents USING (agent)
    WHERE has_old_page
), requests AS (
    SELECT
        site, visitor, coalesce(protocol IN ('HTTP/1.0', 'HTTP/1.1'), FALSE) AS is_old,
        is_file(path, $file_pattern) AS is_asset, is_click(short_code, status) AS is_click,
        coalesce(status BETWEEN 200 AND 299, FALSE) AND coalesce(signals, 0) & $bits.plain_http = 0 AS is_sent
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) AS visits
    JOIN browsers ON browsers.site = hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, ''))
        AND browsers.agent = hash(user_agent)
    WHERE visits.visitor IS NOT NULL AND bot_category IN ('human', 'ai_referral')
)
SELECT site, visitor, CAST($bits.old_protocol_bare AS BIGINT) AS signals FROM requests GROUP BY site, visitor
HAVING bool_and(is_old) AND bool_or(is_sent AND NOT is_asset) AND NOT bool_or(is_click OR is_asset)

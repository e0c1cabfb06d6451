-- Signals of a day's visitors, by domain, who requested a page without a header that their browser always sends
-- (fetching_agents), and sent this header with no other request of that day. At least three visitors with such browsers
-- must have sent it to the domain, which shows that no proxy removes it; for a domain that answers only with errors,
-- visitors to all domains count. Visits without facts about headers are skipped, so that logs without headers cost next
-- to nothing. Day and domain are one hash.
-- Parameters: files, days, bits (the bit of each signal, by name).
CREATE OR REPLACE TEMP TABLE headerless_visitors AS
WITH visits AS (
    SELECT
        *, $days[1 + CAST(file_index AS BIGINT)] AS day, bot_category IN ('human', 'ai_referral') AS is_person,
        is_person AND signals & $bits.file = 0 AS is_page
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE visitor IS NOT NULL AND signals & (
        $bits.fetch_absent | $bits.fetch_sent | $bits.language_absent | $bits.language_sent
    ) <> 0
), visitors AS (
    SELECT
        day, hash(day, coalesce(domain, '')) AS site, visitor, any_value(hash(user_agent)) AS agent,
        bool_or(is_person AND signals & $bits.fetch_sent <> 0) AS sends_fetch,
        bool_or(is_person AND signals & $bits.language_sent <> 0) AS sends_language,
        bool_or(is_page AND signals & $bits.https <> 0 AND signals & $bits.fetch_absent <> 0) AS lacks_fetch,
        bool_or(is_page AND signals & $bits.language_absent <> 0) AS lacks_language,
        bool_and(coalesce(status >= 400, FALSE)) AS has_only_errors, bit_or(signals) AS facts
    FROM visits GROUP BY day, site, visitor
), marked AS (
    SELECT
        visitors.*, fetching.agent IS NOT NULL AS is_browser,
        is_browser AND sends_fetch AS shows_fetch, is_browser AND sends_language AS shows_language
    FROM visitors LEFT JOIN fetching_agents AS fetching USING (agent)
), sites AS (
    SELECT
        site, bool_and(has_only_errors) AS has_only_errors,
        count(*) FILTER (shows_fetch) AS fetch, count(*) FILTER (shows_language) AS language
    FROM marked GROUP BY site
), days AS (
    SELECT
        day, count(DISTINCT visitor) FILTER (shows_fetch) AS fetch,
        count(DISTINCT visitor) FILTER (shows_language) AS language
    FROM marked GROUP BY day
), whole AS (
    SELECT day, visitor, bit_or(facts) AS facts FROM visitors GROUP BY day, visitor
), judged AS (
    SELECT
        site, visitor,
        CASE WHEN lacks_fetch AND if(sites.has_only_errors, days.fetch, sites.fetch) >= 3
                AND whole.facts & $bits.fetch_sent = 0
            THEN $bits.no_fetch_metadata ELSE 0 END
        | CASE WHEN lacks_language AND if(sites.has_only_errors, days.language, sites.language) >= 3
                AND whole.facts & $bits.language_sent = 0
            THEN $bits.no_language ELSE 0 END AS signals
    FROM marked JOIN sites USING (site) JOIN days USING (day) JOIN whole USING (day, visitor)
    WHERE is_browser
)
SELECT site, visitor, CAST(signals AS BIGINT) AS signals FROM judged WHERE signals <> 0

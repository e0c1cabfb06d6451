-- Signals of a day's visitors, by domain, who did not send a header that their browser always sends (fetching_agents)
-- with a page, nor with any request of their day, although three visitors with such browsers did, so that no proxy
-- removes it. Visits without facts about headers are skipped, so that logs without headers cost next to nothing. Day
-- and domain are one hash.
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
        bool_or(is_person AND signals & $bits.fetch_sent <> 0) AS shows_fetch,
        bool_or(is_person AND signals & $bits.language_sent <> 0) AS shows_language,
        bool_or(is_page AND signals & $bits.https <> 0 AND signals & $bits.fetch_absent <> 0) AS lacks_fetch,
        bool_or(is_page AND signals & $bits.language_absent <> 0) AS lacks_language,
        bit_or(signals) AS facts
    FROM visits GROUP BY day, site, visitor
), browsers AS (
    SELECT * FROM visitors SEMI JOIN fetching_agents USING (agent)
), sites AS (
    SELECT site, count(*) FILTER (shows_fetch) >= 3 AS fetch, count(*) FILTER (shows_language) >= 3 AS language
    FROM browsers GROUP BY site
), days AS (
    SELECT day, visitor, bit_or(facts) AS facts FROM visitors GROUP BY day, visitor
), judged AS (
    SELECT
        browsers.site, browsers.visitor,
        CASE WHEN lacks_fetch AND sites.fetch AND days.facts & $bits.fetch_sent = 0
            THEN $bits.no_fetch_metadata ELSE 0 END
        | CASE WHEN lacks_language AND sites.language AND days.facts & $bits.language_sent = 0
            THEN $bits.no_language ELSE 0 END AS signals
    FROM browsers JOIN sites USING (site) JOIN days USING (day, visitor)
)
SELECT site, visitor, CAST(signals AS BIGINT) AS signals FROM judged WHERE signals <> 0

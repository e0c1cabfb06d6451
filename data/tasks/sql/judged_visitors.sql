-- The signals of each day's visitors, as bits; visitors without any are left out. data/signals.py defines each signal.
-- Following one of the site's own links (link_codes) is not evidence, nor is following a dead link that three visitors
-- follow. A path that was served (2xx, 304) exists, and its owner, editors and readers request it: it is not a probe on
-- its domain. A redirect proves nothing, and /wp-admin redirects twice, so probes need three different redirects. A
-- single probe by a visitor who loads files for a while is an operator's check of how the server answers it. A browser
-- sends data where a page tells it to, so visitors also probe who look human, send data to two paths that take none,
-- and get nothing but errors. For suspects who are not wide, only probes and files are read: they have too few errors,
-- or open pages too slowly, for the other signals. Errors are counted by page: a browser requests the files that a
-- broken page names, and people reload a dead page. Requests are first counted by target, which is faster than counting
-- distinct targets. Day, domain and path are one hash, since clients choose the length and number of paths.
-- Parameters: files, days, file_pattern, bits (the bit of each signal, by name).
CREATE OR REPLACE TEMP TABLE judged_visitors AS
WITH answered AS (
    SELECT
        hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, ''), path) AS target,
        bool_or(is_served(status)) AS is_there
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) WHERE is_malicious AND status < 400
    GROUP BY target
), followed AS (
    SELECT hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, ''), path) AS target
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE status IN (404, 410) AND visitor IS NOT NULL AND NOT coalesce(is_malicious, FALSE)
    GROUP BY target HAVING count(DISTINCT visitor) >= 3
), visits AS (
    SELECT *, $days[1 + CAST(file_index AS BIGINT)] AS day
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
), requests AS (
    SELECT
        day, visitor, seconds, hash(day, coalesce(domain, ''), path) AS target,
        bool_or(coalesce(is_malicious, FALSE)) AS is_probe,
        bool_or(coalesce(signals, 0) & $bits.attacked <> 0) AS is_attack,
        bool_or(coalesce(status IN (404, 410), FALSE)) AS is_missing,
        bool_or(coalesce(status IN (404, 410), FALSE)
            AND NOT coalesce(short_code IN (SELECT short_code FROM link_codes), FALSE)) AS is_broken,
        bool_or(is_refused_post(method, status) AND bot_category IN ('human', 'ai_referral')) AS is_refused,
        bool_and(coalesce(status >= 400, FALSE)) AS is_error,
        bool_or(is_file(path, $file_pattern)) AS is_asset
    FROM visits JOIN suspects USING (day, visitor)
    WHERE is_wide OR is_malicious OR signals & $bits.attacked <> 0 OR contains(path, '.')
    GROUP BY ALL
), evidence AS (
    SELECT
        day, visitor, seconds,
        count(*) FILTER (is_probe AND NOT coalesce(is_there, FALSE)) >= 3 AS scanned,
        count(*) FILTER (is_probe AND answered.target IS NULL) AS probes,
        probes = 1 AND seconds >= 600 AND count(*) FILTER (is_asset AND NOT is_missing) >= 20 AS is_operator,
        scanned OR bool_or(is_attack) OR probes > 0 AND NOT is_operator
        OR count(*) FILTER (is_refused) >= 2 AND bool_and(is_error) AS probed,
        count(*) FILTER (NOT is_asset) AS pages,
        count(*) FILTER (NOT is_asset AND NOT is_missing) AS found,
        count(*) FILTER (is_broken AND NOT is_asset AND followed.target IS NULL) AS missing
    FROM requests LEFT JOIN answered USING (target) LEFT JOIN followed USING (target)
    GROUP BY day, visitor, seconds
), judged AS (
    SELECT
        day, visitor,
        CASE WHEN probed THEN $bits.probed ELSE 0 END
        | CASE WHEN scanned THEN $bits.scanned ELSE 0 END
        | CASE WHEN found + missing >= 5 AND missing >= 4 * found THEN $bits.errors ELSE 0 END
        | CASE WHEN pages >= 30 AND seconds <= 3 * pages THEN $bits.breadth ELSE 0 END
        | CASE WHEN pages >= 200 AND seconds <= pages OR pages >= 800 AND seconds <= 3 * pages THEN $bits.sweep
            ELSE 0 END AS signals
    FROM evidence
)
SELECT day, visitor, CAST(signals AS BIGINT) AS signals FROM judged WHERE signals <> 0

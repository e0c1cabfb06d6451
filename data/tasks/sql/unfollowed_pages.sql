-- Pages that browsers prefetched and seem never to have opened, as hashes that judged_visits.sql looks up. Only
-- visitors with such a page are read; each of their requests has a fixed size, except for the paths of these pages.
-- Opening a prefetched page sends no second request, but the page then requests a file or the next page. Each such
-- request shows that one page was opened: the newest page prefetched in the half hour before this request. A page
-- requested again was not opened from its prefetched copy; a file within two seconds of an opened page belongs to it.
-- At the same moment, a page comes before prefetched pages, and the prefetched page with the last path is the newest.
-- Visits are not materialized, since that would read all their columns.
-- Parameters: files, days, bits.
CREATE OR REPLACE TEMP TABLE unfollowed_pages AS
WITH visits AS NOT MATERIALIZED (
    SELECT
        hash($days[1 + CAST(file_index AS BIGINT)], coalesce(domain, '')) AS site, visitor, visited_at, path,
        coalesce(signals, 0) & $bits.file <> 0 AS is_file,
        coalesce(signals, 0) & $bits.loaded_ahead <> 0 AS is_ahead
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE) WHERE visitor IS NOT NULL
), requests AS (
    SELECT
        site, visitor, visited_at, hash(path) AS page, is_file, NOT (is_file OR is_ahead) AS is_opened,
        CASE WHEN is_ahead THEN path END AS ahead
    FROM visits SEMI JOIN (SELECT site, visitor FROM visits WHERE is_ahead AND NOT is_file) USING (site, visitor)
    WHERE NOT (is_file AND is_ahead)
), placed AS (
    SELECT *,
        max(visited_at) FILTER (is_opened) OVER moments AS opened_before,
        min(visited_at) FILTER (is_opened) OVER (
            PARTITION BY site, visitor, page ORDER BY visited_at GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS asked_again
    FROM requests
    WINDOW moments AS (PARTITION BY site, visitor ORDER BY visited_at)
), followed AS (
    SELECT *,
        max(ahead) OVER (moments GROUPS BETWEEN CURRENT ROW AND CURRENT ROW) AS newest,
        min(visited_at) FILTER (ahead IS NOT NULL) OVER later AS ahead_next,
        min(visited_at) FILTER (is_opened) OVER later AS opened_next,
        min(visited_at) FILTER (is_file AND coalesce(visited_at > opened_before + INTERVAL 2 SECONDS, TRUE)) OVER (
            moments GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS loaded_next
    FROM placed
    WINDOW moments AS (PARTITION BY site, visitor ORDER BY visited_at),
        later AS (
            PARTITION BY site, visitor ORDER BY visited_at GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        )
)
SELECT hash(site, visitor, visited_at, page) AS visit FROM followed
WHERE ahead IS NOT NULL
GROUP BY visit
HAVING NOT coalesce(bool_or(
    ahead = newest AND (
        opened_next <= least(visited_at + INTERVAL 30 MINUTES, ahead_next)
            AND opened_next < coalesce(asked_again, 'infinity')
        OR loaded_next <= visited_at + INTERVAL 30 MINUTES
            AND loaded_next < coalesce(least(ahead_next, opened_next), 'infinity')
    )
), FALSE)

-- The visits of some days, each drawn by 128 bits that follow from the seed, its day and its position in it.
-- A person keeps address, country, device, system and browser. Tables: those of draws.py, and days.
-- Parameters: organization, seed, newcomers (how many people change from day to day), browsers, skew (how much
-- more often some browsers come than others; 1: all alike), pages.
CREATE OR REPLACE TEMP TABLE drawn AS
WITH positions AS (
    SELECT *, concat_ws(' ', $seed, $organization, number, unnest(range(visits))) AS place FROM days
), thrown AS (
    SELECT *, md5_number_lower(place) AS a, md5_number_upper(place) AS b FROM positions
), came AS (
    SELECT
        thrown.* EXCLUDE (place),
        kind,
        kind IN ('people', 'referred') AS is_person,
        CASE WHEN kind IN ('people', 'referred')
            THEN CAST(number * $newcomers AS BIGINT) + CAST(((b & 16777215) * greatest(visits // 2, 1)) >> 24 AS BIGINT)
            ELSE CAST((b >> 8) & 255 AS BIGINT) END AS seat
    FROM thrown JOIN kinds USING (number) WHERE kinds.face = (a & 1023)
), known AS (
    SELECT
        came.*,
        md5_number_lower(concat_ws(' ', $seed, $organization, is_person, seat)) AS self,
        coalesce(callers.agent, CAST(floor($browsers * pow((self >> 32) / 4294967296, $skew)) AS BIGINT)) AS caller
    FROM came LEFT JOIN callers ON callers.kind = came.kind AND callers.face = (b & 255)
)
SELECT
    known.*,
    domain,
    origin,
    country,
    CAST(day AS TIMESTAMP) + to_seconds(CAST(hour * 3600 + (((b >> 40) & 4095) * 3600) // 4096 AS BIGINT)) AS visited_at,
    CASE WHEN is_person THEN printf('2001:db8::%x:%x', seat >> 16, seat & 65535)
        ELSE concat_ws('.', 198, 18, caller % 256, seat) END AS ip,
    CASE
        WHEN (b >> 52) & 127 < 4 THEN strays.path
        WHEN NOT is_person AND (b >> 52) & 127 < 17 THEN concat('/docs/page-', ((a >> 10) & 65535) % $pages)
        WHEN burst IS NOT NULL AND (b >> 52) & 127 < 58 THEN concat('/', burst)
        ELSE concat('/', links.short_code)
    END AS path,
    CASE
        WHEN (a >> 54) & 511 = 0 THEN 503
        WHEN (b >> 52) & 127 < 4 THEN 404
        WHEN NOT is_person AND (b >> 52) & 127 < 17 THEN 200
        ELSE 302
    END AS status
FROM known
JOIN arrivals ON arrivals.kind = known.kind AND arrivals.face = (a >> 26) & 65535
JOIN hours ON hours.kind = known.kind AND hours.face = (b >> 24) & 1023
JOIN countries ON countries.kind = known.kind AND countries.face = self & 4095
JOIN links ON links.face = (a >> 10) & 65535
JOIN domains ON domains.face = (a >> 42) & 255
JOIN strays ON strays.face = (a >> 50) & 15

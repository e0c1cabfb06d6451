WITH zone_days AS MATERIALIZED (
    SELECT zone, today_in(zone, $now) AS today FROM (SELECT zone FROM zones UNION SELECT NULL)
), live AS (
    SELECT organization, day, path, checked_at > $after AND checked_at <= $until AS is_recent
    FROM files LEFT JOIN zones USING (organization) JOIN zone_days ON zone_days.zone IS zones.zone
    WHERE deletable_at IS NULL AND visits > 0 AND day < today
), counted AS (
    SELECT organization, days.key AS day, paths.value AS path
    FROM rollups, json_each(sources) AS days, json_each(days.value) AS paths
    WHERE deletable_at IS NULL AND rollups.path NOT IN (SELECT value FROM json_each($lost))
    AND version = json_extract($versions, format(
        '$[%d][%d]', organization NOT IN (SELECT organization FROM behaviour_off),
        organization IN (SELECT organization FROM files_aside)))
), differing AS (
    SELECT organization, day FROM (SELECT organization, day, path FROM live UNION ALL SELECT * FROM counted)
    GROUP BY organization, day, path HAVING count(*) = 1
)
SELECT DISTINCT organization, substr(day, 1, 8) || '01'
FROM live WHERE (organization, day) IN (SELECT * FROM differing)
GROUP BY organization, day HAVING NOT max(is_recent)
ORDER BY 1, 2

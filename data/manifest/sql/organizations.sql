WITH days AS (
    SELECT organization, day, count(*) AS files, sum(visits) AS visits, sum(bytes) AS bytes,
        sum(unfinished_of IS NULL) AS finished, min(behaviour_version) AS judged
    FROM files WHERE deletable_at IS NULL AND visits > 0 GROUP BY organization, day
), landed AS (
    SELECT organization, sum(files) AS files, sum(visits) AS visits, sum(bytes) AS bytes, min(day) AS first_day,
        max(day) AS last_day, sum(iif(day >= today_in(zone, $now), files, 0)) AS open_files,
        sum(day < today_in(zone, $now) AND finished > 1) AS unmerged_days,
        sum(day < today_in(zone, $now) AND judged = 0) AS unjudged_days,
        sum(day < today_in(zone, $now) AND judged BETWEEN 1 AND $version - 1) AS outdated_days
    FROM days LEFT JOIN zones USING (organization) GROUP BY organization
), waiting AS (
    SELECT organization, sum(visits) AS pending, min(received_at) AS oldest FROM pending GROUP BY organization
), known AS (
    SELECT organization FROM batches UNION SELECT organization FROM epochs
    UNION SELECT organization FROM landed UNION SELECT organization FROM waiting
)
SELECT organization, coalesce(files, 0), coalesce(visits, 0), coalesce(bytes, 0), first_day, last_day,
    coalesce(open_files, 0), coalesce(unmerged_days, 0), coalesce(unjudged_days, 0), coalesce(pending, 0), oldest,
    coalesce(outdated_days, 0)
FROM known LEFT JOIN landed USING (organization) LEFT JOIN waiting USING (organization)
WHERE $organization IN ('', organization) ORDER BY organization

-- Requests, except HEAD, for the path or the hidden folder (or, for a catch-all, for all paths that only vulnerability
-- scanners request), and how many of them got 200 to 299.
SELECT number, day, total_if(1, is_success(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
    AND subject.path IN ('*', visits.path, plain_path(visits.path), exposed_part(plain_path(visits.path)))
WHERE is_malicious AND coalesce(method <> 'HEAD', TRUE)
GROUP BY number, day
ORDER BY number, day;

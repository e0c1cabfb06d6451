-- Requests for the path, or of a catch-all, for all paths that only vulnerability scanners ask for, and how many of them were
-- answered 200 to 299.
SELECT number, day, total_if(1, is_success(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
    AND (visits.path = subject.path OR subject.path = '*')
WHERE is_malicious
GROUP BY number, day
ORDER BY number, day;

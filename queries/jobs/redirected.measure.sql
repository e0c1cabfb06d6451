-- Requests for the path that were redirected (301, 302, 307 or 308) or answered by its link, and the first of each day.
SELECT number, day, count(*) AS visits, min(visited_at) AS first_seen
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.path = subject.path
WHERE NOT is_malicious AND (status IN (301, 302, 307, 308) OR visits.short_code IS NOT NULL AND status < 400)
GROUP BY number, day
ORDER BY number, day;

-- Requests for the path by people, and how many of them got 403, 429 or 499.
SELECT number, day, total_if(1, refuses_people(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
    AND template_of(visits.path, visits.short_code) = subject.path
WHERE is_person(bot_category) AND is_evidence(is_malicious, confidence, signals)
GROUP BY number, day
ORDER BY number, day;

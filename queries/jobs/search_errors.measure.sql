-- Visits to the domain by search crawlers, and how many of them got 500 to 599.
SELECT number, day, total_if(1, status BETWEEN 500 AND 599) AS events, count(*) AS visits
FROM visits_with_aside AS visits JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
WHERE bot_category = 'search_crawler' AND visits.path <> '' AND is_evidence(is_malicious, confidence, signals)
GROUP BY number, day
ORDER BY number, day;

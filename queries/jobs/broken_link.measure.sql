-- Requests for the path by AI products and people whom they sent, and how many of them got 404 or 410.
SELECT number, day, total_if(1, is_not_found(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.path = subject.path
WHERE is_ai(bot_category) AND is_evidence(is_malicious, confidence, signals)
GROUP BY number, day
ORDER BY number, day;

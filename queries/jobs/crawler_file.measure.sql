-- Requests for the file by search and AI crawlers that were not redirected, and how many of them got 404 or 410.
SELECT number, day, total_if(1, is_not_found(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.path = subject.path
WHERE (bot_category = 'search_crawler' OR is_ai(bot_category) AND NOT is_person(bot_category))
    AND is_evidence(is_malicious, confidence, signals) AND NOT is_redirected(status)
GROUP BY number, day
ORDER BY number, day;

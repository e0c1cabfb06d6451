-- Visits to the path by people and AI products, and how many of them were answered 500 to 599.
SELECT day, total_if(1, status BETWEEN 500 AND 599) AS events, count(*) AS visits
FROM visits_in_scope AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.path = subject.path
WHERE (is_person(bot_category) OR is_ai(bot_category)) AND NOT is_malicious
GROUP BY day
ORDER BY day;

-- Visits under the agent's name at the domain, and how many came from outside its operator's addresses and were not
-- refused.
SELECT number, day, total_if(1, confidence = 'contradicted' AND NOT is_refused(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.agent = subject.agent
GROUP BY number, day
ORDER BY number, day;

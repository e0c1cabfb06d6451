-- Visits to the domain, and how many of them were by the agent or browser.
SELECT number, day, total_if(1, name_of(visits.agent, visits.user_agent) = subject.agent) AS events, count(*) AS visits
FROM visits_with_aside AS visits JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
GROUP BY number, day
ORDER BY number, day;

-- Requests of agents by path, other than for robots.txt: the 100,000 pairs with the most visits.
SELECT agent, operator, agent_kind, path, count(*) AS visits, max(visited_at) AS last_visit
FROM visits_with_aside
WHERE agent IS NOT NULL AND path LIKE '/%' AND path <> '/robots.txt' AND confidence IS DISTINCT FROM 'contradicted'
GROUP BY ALL
ORDER BY visits DESC, agent, operator, agent_kind, path
LIMIT 100_000;

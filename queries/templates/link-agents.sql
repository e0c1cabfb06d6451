-- The AI agents of these days, with the time at which each first fetched the links in scope; NULL if it did not.
WITH fetched AS (
    SELECT agent, operator, count(*) AS agent_fetches, min(visited_at) AS first_seen
    FROM ai_link_visits WHERE NOT is_referral GROUP BY ALL
)
SELECT found.agent, found.operator, coalesce(agent_fetches, 0) AS agent_fetches, first_seen
FROM ai_agents_in_days AS found
LEFT JOIN fetched ON fetched.agent = found.agent AND fetched.operator = found.operator
ORDER BY agent_fetches DESC, agent, operator;

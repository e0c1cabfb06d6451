-- When each AI agent of these days first fetched the links in scope; without a time, it never did.
WITH fetched AS (
    SELECT agent, operator, count(*) AS agent_fetches, min(visited_at) AS first_seen
    FROM ai_link_visits WHERE NOT is_referral GROUP BY ALL
), made AS (
    SELECT min(created_at) AS created_at FROM links_in_scope
    WHERE short_code IN (SELECT short_code FROM ai_link_visits)
), seen AS (
    SELECT found.agent, found.operator, coalesce(agent_fetches, 0) AS agent_fetches, first_seen,
        (SELECT created_at FROM made) AS created_at
    FROM ai_agents_in_days AS found
    LEFT JOIN fetched ON fetched.agent = found.agent AND fetched.operator = found.operator
)
SELECT
    agent, operator, agent_fetches, first_seen,
    CASE WHEN created_at <= first_seen THEN date_diff('day', created_at, first_seen) END AS days_to_first_fetch
FROM seen
ORDER BY agent_fetches DESC, agent, operator;

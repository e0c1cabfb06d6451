-- Visits and visitors of each day by agent.
CREATE VIEW daily_agents AS
SELECT
    day,
    agent,
    operator,
    agent_kind,
    bot_category,
    confidence,
    total(visits) AS visits,
    count(visitor) AS unique_visitors,
    total(errors_4xx) AS errors_4xx,
    total(errors_5xx) AS errors_5xx,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM (
    SELECT
        day,
        agent,
        operator,
        agent_kind,
        bot_category,
        confidence,
        visitor,
        count(*) AS visits,
        count(*) FILTER (status BETWEEN 400 AND 499) AS errors_4xx,
        count(*) FILTER (status BETWEEN 500 AND 599) AS errors_5xx,
        min(visited_at) AS first_seen,
        max(visited_at) AS last_seen
    FROM automated_in_scope
    GROUP BY day, agent, operator, agent_kind, bot_category, confidence, visitor
)
GROUP BY day, agent, operator, agent_kind, bot_category, confidence;

-- Visits and visitors of each day by developer tool.
CREATE VIEW daily_tools AS
SELECT
    day,
    tool,
    operator,
    total(visits) AS visits,
    count(visitor) AS unique_visitors,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM (
    SELECT
        day,
        ai_source AS tool,
        operator,
        visitor,
        count(*) AS visits,
        min(visited_at) AS first_seen,
        max(visited_at) AS last_seen
    FROM visits_in_scope
    WHERE bot_category = 'ai_coding_agent'
    GROUP BY day, ai_source, operator, visitor
)
GROUP BY day, tool, operator;

-- Visits and visitors of each day by developer tool.
CREATE VIEW daily_tools AS
SELECT
    day,
    ai_source AS tool,
    operator,
    count(*) AS visits,
    count(DISTINCT visitor) AS unique_visitors,
    min(visited_at) AS first_seen,
    max(visited_at) AS last_seen
FROM visits_in_scope WHERE bot_category = 'ai_coding_agent' GROUP BY day, ai_source, operator;

-- Visits and visitors of each day by developer tool.
CREATE VIEW raw_tools AS
SELECT
    for_domain, day, tool, operator, total(visits) AS visits, count(visitor) AS unique_visitors,
    min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (
    SELECT
        for_domain, day, ai_source AS tool, operator, visitor, count(*) AS visits,
        min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM raw_visits WHERE bot_category = 'ai_coding_agent' GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_tools AS
SELECT day, tool, operator, visits, unique_visitors, first_seen, last_seen
FROM counted('tools');

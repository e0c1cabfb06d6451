-- Daily visits and visitors by developer tool.
CREATE VIEW daily_tools_counted AS
SELECT
    for_domain, day, tool, operator, total(visits) AS visits, count(visitor) AS unique_visitors,
    min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (
    SELECT
        for_domain, day, ai_source AS tool, operator, visitor, count(*) AS visits,
        min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM visits_to_count('daily_tools') WHERE bot_category = 'ai_coding_agent' GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_tools_stored AS
SELECT
    for_domain, day, tool, operator, visits, unique_visitors, first_seen, last_seen
FROM rollup_rows('daily_tools') WHERE has_group('ai');

CREATE VIEW daily_tools AS FROM query_table(parts_of('daily_tools'), TRUE);

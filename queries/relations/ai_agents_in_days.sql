-- The AI agents that occur on the days of the scope; the scope's other filters are ignored.
CREATE VIEW ai_agents_in_days AS
SELECT DISTINCT agent, operator FROM (
    SELECT agent, operator, bot_category, agent_kind FROM stored_rows('daily_agents') WHERE for_domain IS NULL
    UNION ALL BY NAME
    SELECT agent, operator, bot_category, agent_kind FROM read_visits(getvariable('uncovered_files'))
) WHERE purpose(bot_category, agent_kind) IS NOT NULL AND agent IS NOT NULL AND operator IS NOT NULL;

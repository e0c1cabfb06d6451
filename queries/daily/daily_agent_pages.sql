-- The paths that each agent asked for on each day.
CREATE VIEW daily_agent_pages AS
SELECT day, agent, operator, agent_kind, bot_category, confidence, path, count(*) AS visits
FROM automated_in_scope WHERE path <> ''
GROUP BY day, agent, operator, agent_kind, bot_category, confidence, path;

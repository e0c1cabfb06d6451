-- The paths that each developer tool asked for on each day.
CREATE VIEW daily_tool_pages AS
SELECT day, ai_source AS tool, operator, path, count(*) AS visits
FROM visits_in_scope WHERE bot_category = 'ai_coding_agent' AND path <> ''
GROUP BY day, ai_source, operator, path;

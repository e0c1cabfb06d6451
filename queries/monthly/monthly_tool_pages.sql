-- The paths that each developer tool asked for.
CREATE VIEW raw_tool_pages AS
SELECT for_domain, bit_or(bit_of(day)) AS days, ai_source AS tool, operator, path
FROM raw_visits
WHERE bot_category = 'ai_coding_agent' AND path <> '' GROUP BY ALL;

CREATE VIEW monthly_tool_pages AS
SELECT tool, operator, path
FROM counted('tool_pages');

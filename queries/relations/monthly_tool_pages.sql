-- The paths requested by each developer tool.
CREATE VIEW monthly_tool_pages AS
SELECT for_domain, bit_or(day_bit(day)) AS days, ai_source AS tool, operator, path
FROM visits_to_count('monthly_tool_pages')
WHERE bot_category = 'ai_coding_agent' AND path <> '' GROUP BY ALL
UNION ALL BY NAME
SELECT for_domain, days, tool, operator, path FROM rollup_rows('monthly_tool_pages');

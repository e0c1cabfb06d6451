-- The paths requested by each developer tool.
CREATE VIEW monthly_tool_pages_counted AS
SELECT for_domain, bit_or(day_bit(day)) AS days, ai_source AS tool, operator, path
FROM visits_to_count('monthly_tool_pages')
WHERE bot_category = 'ai_coding_agent' AND path <> '' GROUP BY ALL;

CREATE VIEW monthly_tool_pages_stored AS
SELECT for_domain, days, tool, operator, path FROM rollup_rows('monthly_tool_pages') WHERE has_group('ai');

CREATE VIEW monthly_tool_pages AS FROM query_table(parts_of('monthly_tool_pages'), TRUE);

-- Requests by coding agents per tool. Many tools look like browsers or libraries, so the counts are a lower bound.
WITH pages AS (
    SELECT tool, operator, count(DISTINCT path) AS pages_accessed FROM monthly_tool_pages GROUP BY tool, operator
), tools AS (
    SELECT
        tool,
        operator,
        total(visits) AS visits,
        total(unique_visitors) AS unique_visitors,
        min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
    FROM daily_tools GROUP BY tool, operator
)
SELECT
    coalesce(tools.tool, 'unknown') AS tool,
    coalesce(tools.operator, 'unknown') AS operator,
    visits,
    share(visits, sum(visits) OVER ()) AS percentage,
    coalesce(pages_accessed, 0) AS pages_accessed,
    unique_visitors,
    first_seen,
    last_seen
FROM tools LEFT JOIN pages
    ON pages.tool IS NOT DISTINCT FROM tools.tool AND pages.operator IS NOT DISTINCT FROM tools.operator
ORDER BY visits DESC, tool, operator;

-- Requests by AI assistants per platform, without vulnerability probes. A page that was read was not necessarily cited.
WITH pages AS (
    SELECT ai_source, count(DISTINCT path) AS pages_accessed FROM monthly_assistant_pages GROUP BY ai_source
), platforms AS (
    SELECT
        ai_source, total(visits) AS visits, total(unique_visitors) AS unique_visitors, total(asked) AS asked
    FROM daily_assistants GROUP BY ai_source
)
SELECT
    coalesce(platforms.ai_source, 'unknown') AS ai_source,
    visits,
    share(visits, sum(visits) OVER ()) AS percentage,
    coalesce(pages_accessed, 0) AS pages_accessed,
    unique_visitors,
    asked
FROM platforms LEFT JOIN pages ON pages.ai_source IS NOT DISTINCT FROM platforms.ai_source
ORDER BY visits DESC, ai_source;

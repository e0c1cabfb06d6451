-- Automated traffic by agent: operator, kind, category, confidence of the classification, pages and error responses.
WITH pages AS (
    SELECT agent, operator, agent_kind, bot_category, confidence, count(DISTINCT path) AS pages_accessed
    FROM monthly_agent_pages WHERE is_listed_bot(bot_category) GROUP BY ALL
), agents AS (
    SELECT
        agent, operator, agent_kind, bot_category, confidence,
        total(visits) AS visits,
        total(unique_visitors) AS unique_visitors,
        total(errors_4xx) AS errors_4xx,
        total(errors_5xx) AS errors_5xx,
        min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
    FROM daily_agents WHERE is_listed_bot(bot_category)
    GROUP BY agent, operator, agent_kind, bot_category, confidence
)
SELECT
    coalesce(agents.agent, 'unknown') AS agent, coalesce(agents.operator, 'unknown') AS operator,
    coalesce(agents.agent_kind, 'unknown') AS agent_kind, agents.bot_category,
    coalesce(agents.confidence, 'unknown') AS confidence,
    visits, share(visits, sum(visits) OVER ()) AS percentage, coalesce(pages_accessed, 0) AS pages_accessed,
    unique_visitors, errors_4xx, errors_5xx, first_seen, last_seen
FROM agents LEFT JOIN pages
    ON (pages.agent, pages.operator, pages.agent_kind, pages.bot_category, pages.confidence)
    IS NOT DISTINCT FROM (agents.agent, agents.operator, agents.agent_kind, agents.bot_category, agents.confidence)
ORDER BY visits DESC, agent, operator, agent_kind, bot_category, confidence;

-- Automated traffic by agent: operator, kind, category, confidence of the classification, pages, error responses and bytes sent.
-- At most 1,000 rows: beyond that, the last ones are (other), one for each category.
WITH found AS (
    SELECT * EXCLUDE (for_domain, day), 0 AS pages FROM daily_agents
    UNION ALL BY NAME
    SELECT agent, operator, agent_kind, bot_category, confidence, count(DISTINCT path) AS pages
    FROM monthly_agent_pages GROUP BY ALL
), agents AS (
    SELECT
        coalesce(agent, 'unknown') AS agent, coalesce(operator, 'unknown') AS operator,
        coalesce(agent_kind, 'unknown') AS agent_kind, bot_category, coalesce(confidence, 'unknown') AS confidence,
        agent IS NOT DISTINCT FROM '(other)' OR total(visits) = 0 AS is_cut, total(visits) AS visits,
        total(pages) AS pages, total(unique_visitors) AS unique_visitors, total(bytes_sent) AS bytes_sent,
        total(errors_4xx) AS errors_4xx, total(errors_5xx) AS errors_5xx, min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
    FROM found WHERE is_listed_bot(bot_category) GROUP BY found.agent, found.operator, found.agent_kind, found.bot_category, found.confidence
), listed AS (
    SELECT *, is_rest(is_cut, row_number() OVER (
        ORDER BY is_cut, visits DESC, agent, operator, agent_kind, bot_category, confidence), 6) AS is_rest
    FROM agents
)
SELECT
    or_other(agent, is_rest) AS agent, or_other(operator, is_rest) AS operator,
    or_other(agent_kind, is_rest) AS agent_kind, bot_category, or_other(confidence, is_rest) AS confidence,
    total(visits) AS visits, share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(pages) AS pages_accessed, total(unique_visitors) AS unique_visitors, total(errors_4xx) AS errors_4xx,
    total(errors_5xx) AS errors_5xx, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
    total(bytes_sent) AS bytes_sent
FROM listed GROUP BY is_rest, 1, 2, 3, bot_category, 5
ORDER BY is_rest, visits DESC, agent, operator, agent_kind, bot_category, confidence;

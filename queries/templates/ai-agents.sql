-- Fetches by AI agent and purpose, their bytes, and the people whom the products of the agent's operator sent.
WITH sent AS (
    SELECT coalesce(operator, ai_source, 'unknown') AS operator, total(visits) AS ai_referrals
    FROM daily_categories LEFT JOIN operators ON name = ai_source WHERE is_referral(bot_category) GROUP BY ALL
), fetched AS (
    SELECT
        coalesce(operator, 'unknown') AS operator, purpose(bot_category, agent_kind) AS purpose,
        coalesce(agent, 'unknown') AS agent, total(visits) AS agent_fetches, total(bytes_sent) AS bytes_sent
    FROM daily_agents WHERE purpose(bot_category, agent_kind) IS NOT NULL GROUP BY ALL
)
SELECT operator, purpose, agent, agent_fetches, bytes_sent, coalesce(ai_referrals, 0) AS ai_referrals
FROM fetched LEFT JOIN sent USING (operator)
ORDER BY agent_fetches DESC, operator, purpose, agent;

-- The paths requested by each agent and by AI referrals.
-- Serves: traffic_type
CREATE VIEW monthly_agent_pages AS
SELECT for_domain, bit_or(day_bit(day)) AS days, agent, operator, agent_kind, bot_category, confidence, path
FROM visits_to_count('monthly_agent_pages') WHERE NOT is_human(bot_category) AND path <> '' GROUP BY ALL
UNION ALL BY NAME
SELECT
    for_domain, days, agent, operator, agent_kind, bot_category, confidence, path
FROM rollup_rows('monthly_agent_pages');

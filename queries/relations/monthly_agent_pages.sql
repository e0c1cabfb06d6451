-- The paths requested by each agent and by AI referrals.
-- Serves: traffic_type, agent, path
CREATE VIEW monthly_agent_pages_counted AS
SELECT for_domain, bit_or(day_bit(day)) AS days, agent, operator, agent_kind, bot_category, confidence, path
FROM visits_to_count('monthly_agent_pages') WHERE NOT is_human(bot_category) AND path <> '' GROUP BY ALL;

CREATE VIEW monthly_agent_pages_stored AS
SELECT
    for_domain, days, agent, operator, agent_kind, bot_category, confidence, path
FROM rollup_rows('monthly_agent_pages')
WHERE matches(agent, getvariable('agent')) AND matches(path, getvariable('path'));

CREATE VIEW monthly_agent_pages AS FROM query_table(parts_of('monthly_agent_pages'), TRUE);

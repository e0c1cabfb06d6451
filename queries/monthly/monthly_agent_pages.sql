-- The paths that each agent asked for, once for every month in scope.
CREATE VIEW raw_agent_pages AS
SELECT for_domain, bit_or(bit_of(day)) AS days, agent, operator, agent_kind, bot_category, confidence, path
FROM raw_automata WHERE path <> '' GROUP BY ALL;

CREATE VIEW monthly_agent_pages AS
SELECT agent, operator, agent_kind, bot_category, confidence, path
FROM counted_automata('agent_pages');

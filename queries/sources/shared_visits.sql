-- The columns that relations read, of all visits in scope; a dashboard reads them once and keeps them in memory.
CREATE VIEW shared_visits AS
SELECT * EXCLUDE (method, user_agent, rules_version) FROM all_visits;

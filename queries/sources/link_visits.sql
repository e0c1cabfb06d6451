-- The columns that relations read, of the visits of one link; a dashboard reads them once and keeps them in memory.
CREATE VIEW link_visits AS
SELECT * EXCLUDE (method, user_agent, rules_version) FROM all_visits;

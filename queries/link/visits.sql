-- The visits of one link that the caller asks for: one more than may be held tells that they are too many.
SELECT * EXCLUDE (method, user_agent, rules_version) FROM visits_in_scope LIMIT $most + 1;

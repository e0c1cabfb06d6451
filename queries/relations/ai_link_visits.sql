-- The AI-related visits to links in scope, one by one.
CREATE VIEW ai_link_visits AS
SELECT short_code, agent, operator, ai_source, is_referral(bot_category) AS is_referral, visited_at
FROM visits_in_scope WHERE is_ai(bot_category) AND short_code IS NOT NULL;

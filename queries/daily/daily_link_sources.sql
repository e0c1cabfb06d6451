-- What AI products fetched and whom they referred on each day, by link.
CREATE VIEW daily_link_sources AS
SELECT
    day,
    ai_source,
    short_code,
    domain,
    count(*) FILTER (NOT is_referral(bot_category)) AS agent_fetches,
    count(*) FILTER (is_referral(bot_category)) AS ai_referrals
FROM visits_in_scope WHERE is_ai(bot_category) GROUP BY day, ai_source, short_code, domain;

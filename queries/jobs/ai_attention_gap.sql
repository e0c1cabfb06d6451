-- Links that assistants read and send nobody to, where 5 people or more are to be expected: as many per fetch as each
-- AI source sends over all links together. Where 5 are expected, nobody comes by chance in 7 of 1,000 cases.
WITH counted AS (
    SELECT * FROM visits_in_scope
    WHERE ai_source IS NOT NULL AND short_code IS NOT NULL AND is_answered(status) AND NOT is_malicious
), links AS (
    SELECT
        domain, short_code, ai_source, total_if(1, agent_kind = 'assistant_fetch') AS agent_fetches,
        total_if(1, is_referral(bot_category)) AS ai_referrals
    FROM counted GROUP BY domain, short_code, ai_source
), sources AS (
    SELECT ai_source, total(agent_fetches) AS all_fetches, total(ai_referrals) AS all_referrals
    FROM links GROUP BY ai_source HAVING total(agent_fetches) > 0
), readers AS (
    SELECT domain, short_code, count(DISTINCT visitor) AS visitors
    FROM counted WHERE agent_kind = 'assistant_fetch' GROUP BY domain, short_code
)
SELECT
    links.domain, links.short_code, total(agent_fetches) AS agent_fetches, total(ai_referrals) AS ai_referrals,
    total(100 * agent_fetches * all_referrals // all_fetches) / 100 AS expected_referrals, 'AI' AS audience,
    max(readers.visitors) AS visitors
FROM links
LEFT JOIN sources ON sources.ai_source = links.ai_source
LEFT JOIN readers ON readers.domain IS NOT DISTINCT FROM links.domain AND readers.short_code = links.short_code
GROUP BY links.domain, links.short_code
HAVING is_found(total(ai_referrals) = 0 AND total(100 * agent_fetches * all_referrals // all_fetches) >= 500)
ORDER BY expected_referrals DESC, domain, short_code
LIMIT 100;

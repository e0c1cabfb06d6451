-- Links that assistants read but to which they send no people, although 5 people or more are expected: as many per
-- fetch as each AI source sends over all links together. Where 5 are expected, none come by chance in 7 of 1,000 cases.
WITH counted AS (
    SELECT
        domain, short_code, ai_source, CASE WHEN agent_kind = 'assistant_fetch' THEN visitor END AS reader,
        CASE WHEN agent_kind = 'assistant_fetch' THEN agent END AS name,
        total_if(1, agent_kind = 'assistant_fetch') AS fetches, total_if(1, is_referral(bot_category)) AS referrals
    FROM detected_visits()
    WHERE ai_source IS NOT NULL AND short_code IS NOT NULL AND is_answered(status) AND is_evidence(is_malicious, confidence, signals) GROUP BY ALL
), links AS (
    SELECT domain, short_code, ai_source, total(fetches) AS fetches, total(referrals) AS referrals
    FROM counted GROUP BY domain, short_code, ai_source
), sources AS (
    SELECT ai_source, total(fetches) AS all_fetches, total(referrals) AS all_referrals
    FROM links GROUP BY ai_source HAVING total(fetches) > 0
), readers AS (
    SELECT domain, short_code, count(DISTINCT reader) AS visitors, top_of(of_name, name) AS top_agent, max(of_name) AS most
    FROM (SELECT *, sum(fetches) OVER (PARTITION BY domain, short_code, name) AS of_name FROM counted WHERE fetches > 0)
    GROUP BY domain, short_code
)
SELECT
    links.domain, links.short_code, total(fetches) AS agent_fetches, total(referrals) AS ai_referrals,
    total(100 * fetches * all_referrals // all_fetches) / 100 AS expected_referrals, 'AI' AS audience,
    max(visitors) AS visitors, max(top_agent) AS top_agent, share(max(most), total(fetches)) AS top_share
FROM links LEFT JOIN sources ON sources.ai_source = links.ai_source
LEFT JOIN readers ON readers.domain IS NOT DISTINCT FROM links.domain AND readers.short_code = links.short_code
GROUP BY links.domain, links.short_code
HAVING meets('people were sent', total(referrals) = 0)
    AND meets('fewer than 5 people are expected', total(100 * fetches * all_referrals // all_fetches) >= 500)
ORDER BY expected_referrals DESC, domain, short_code LIMIT 100;

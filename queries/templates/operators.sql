-- What each AI operator takes and gives: fetches by purpose, bytes, errors, links, and people sent by its products.
WITH links AS (
    SELECT short_code FROM links_in_scope UNION ALL SELECT short_code FROM daily_links
    GROUP BY short_code, domain HAVING count(last_visit) > 0 AND is_link(short_code, domain, bool_or(is_answered))
), reached AS (
    SELECT coalesce(operator, ai_source, 'unknown') AS operator, count(DISTINCT short_code) AS links_reached
    FROM daily_link_sources LEFT JOIN operators ON name = ai_source
    WHERE visits > ai_referrals AND short_code IN (SELECT short_code FROM links) GROUP BY ALL
), found AS (
    SELECT
        coalesce(agents.operator, names.operator, 'unknown') AS operator, purpose(bot_category, agent_kind) AS purpose,
        confidence, visits, signed, bytes_sent, errors_4xx, errors_5xx, last_seen
    FROM daily_agents AS agents LEFT JOIN operators AS names ON names.name = agents.agent
    WHERE purpose(bot_category, agent_kind) IS NOT NULL OR confidence = 'contradicted' AND names.operator IS NOT NULL
    UNION ALL BY NAME SELECT coalesce(operator, ai_source, 'unknown') AS operator, visits AS ai_referrals
    FROM daily_categories LEFT JOIN operators ON name = ai_source WHERE is_referral(bot_category)
)
SELECT
    operator, total_if(visits, purpose IS NOT NULL) AS agent_fetches, total_if(visits, purpose = 'asked') AS asked,
    total_if(visits, purpose = 'indexed') AS indexed, total_if(visits, purpose = 'trained') AS trained,
    total_if(visits, purpose = 'coding') AS coding, total_if(bytes_sent, purpose IS NOT NULL) AS bytes_sent,
    total_if(errors_4xx, purpose IS NOT NULL) AS errors_4xx, total_if(errors_5xx, purpose IS NOT NULL) AS errors_5xx,
    total_if(visits, confidence = 'verified') AS verified,
    total_if(signed, purpose IS NOT NULL AND coalesce(confidence, '') <> 'verified') AS signed,
    total(ai_referrals) AS ai_referrals, total_if(visits, confidence = 'contradicted') AS contradicted,
    rate(total_if(visits, purpose IS NOT NULL), total(ai_referrals)) AS fetches_per_referral,
    rate(total(ai_referrals), total_if(visits, purpose = 'asked')) AS visits_per_answer,
    coalesce(links_reached, 0) AS links_reached, (SELECT count(DISTINCT short_code) FROM links) AS links,
    max(last_seen) AS last_seen
FROM found LEFT JOIN reached USING (operator) GROUP BY operator, links_reached ORDER BY agent_fetches DESC, operator;

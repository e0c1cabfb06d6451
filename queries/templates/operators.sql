-- Fetches by AI operator and purpose, their bytes, errors and links, and people sent by its products.
WITH links AS (
    SELECT short_code, domain FROM daily_links
    GROUP BY short_code, domain HAVING is_link(short_code, domain, bool_or(is_answered))
), reached AS (
    SELECT operator, count(*) AS links_reached FROM (
        SELECT DISTINCT coalesce(operator, ai_source, 'unknown') AS operator, visited.short_code, visited.domain
        FROM daily_link_sources AS visited LEFT JOIN operators ON name = ai_source
        SEMI JOIN links ON visited.short_code = links.short_code AND visited.domain IS NOT DISTINCT FROM links.domain
        WHERE visits > ai_referrals) GROUP BY operator
), found AS (
    SELECT coalesce(agents.operator, names.operator, 'unknown') AS operator, purpose(bot_category, agent_kind) AS purpose,
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
    coalesce(links_reached, 0) AS links_reached, max(last_seen) AS last_seen
FROM found LEFT JOIN reached USING (operator) GROUP BY operator, links_reached ORDER BY agent_fetches DESC, operator;

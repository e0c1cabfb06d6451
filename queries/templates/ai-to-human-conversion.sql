-- For each AI source: what its agents fetched and whom it sent. Two counts side by side, not a proven path.
SELECT
    coalesce(ai_source, 'unknown') AS ai_source,
    total(agent_fetches) AS agent_fetches,
    total(ai_referrals) AS ai_referrals,
    share(total(ai_referrals), total(agent_fetches)) AS conversion_rate,
    rate(total(agent_fetches), total(ai_referrals)) AS fetches_per_referral,
    count(DISTINCT (domain, short_code)) FILTER (short_code IS NOT NULL AND agent_fetches > 0) AS links_fetched,
    count(DISTINCT (domain, short_code)) FILTER (short_code IS NOT NULL AND ai_referrals > 0) AS links_referred
FROM daily_link_sources
GROUP BY coalesce(ai_source, 'unknown')
ORDER BY agent_fetches DESC, ai_source;

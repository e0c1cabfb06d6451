-- Fetches and referrals by AI source. The two counts are independent: a fetch does not prove that it led to a referral.
WITH links AS (
    SELECT short_code, domain FROM daily_links
    GROUP BY short_code, domain HAVING is_link(short_code, domain, bool_or(is_answered))
), seen AS (
    SELECT
        coalesce(ai_source, 'unknown') AS ai_source, sum(visits) > sum(ai_referrals) AS is_fetched,
        sum(ai_referrals) > 0 AS is_referred
    FROM daily_link_sources AS visited
    SEMI JOIN links ON visited.short_code = links.short_code AND visited.domain IS NOT DISTINCT FROM links.domain
    GROUP BY coalesce(ai_source, 'unknown'), domain, short_code
), by_source AS (
    SELECT ai_source, count(*) FILTER (is_fetched) AS links_fetched, count(*) FILTER (is_referred) AS links_referred
    FROM seen GROUP BY ai_source
), sources AS (
    SELECT
        coalesce(ai_source, 'unknown') AS ai_source,
        total_if(visits, purpose IS NOT NULL) AS agent_fetches, total_if(visits, purpose IS NULL) AS ai_referrals,
        total_if(visits, purpose = 'asked') AS asked, total_if(visits, purpose = 'indexed') AS indexed,
        total_if(visits, purpose = 'trained') AS trained, total_if(visits, purpose = 'coding') AS coding
    FROM daily_categories WHERE is_ai(bot_category)
    GROUP BY coalesce(ai_source, 'unknown')
)
SELECT
    ai_source, agent_fetches, ai_referrals, share(ai_referrals, agent_fetches) AS conversion_rate,
    rate(agent_fetches, ai_referrals) AS fetches_per_referral,
    coalesce(links_fetched, 0) AS links_fetched, coalesce(links_referred, 0) AS links_referred,
    asked, indexed, trained, coding
FROM sources LEFT JOIN by_source USING (ai_source)
ORDER BY agent_fetches DESC, ai_source;

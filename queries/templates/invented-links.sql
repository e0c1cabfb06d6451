-- Addresses that AI products made up: no link has them, they got no answer below 400 on these days, and people whom
-- they sent, assistants that were asked, or coding agents got 404 or 410. The 100 with the most people sent.
SELECT
    path,
    coalesce(domain, 'unknown') AS domain,
    max(short_code) AS short_code,
    word_of(min(ranked(of_source, source))) AS ai_source,
    total_if(1, is_referral(bot_category)) AS ai_referrals,
    total_if(1, NOT is_referral(bot_category)) AS agent_fetches,
    count(DISTINCT visitor) AS visitors,
    min(visited_at) AS first_seen,
    max(visited_at) AS last_seen
FROM (
    SELECT
        *, coalesce(ai_source, 'unknown') AS source,
        count(*) OVER (PARTITION BY domain, path, ai_source) AS of_source
    FROM ai_missed_visits
)
GROUP BY path, coalesce(domain, 'unknown')
HAVING bool_or(is_referral(bot_category) OR purpose(bot_category, agent_kind) IN ('asked', 'coding'))
ORDER BY ai_referrals DESC, agent_fetches DESC, path, domain
LIMIT 100;

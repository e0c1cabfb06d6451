-- Paths that AI products, or people whom they sent, ask for and that are not there: 404 or 410 on 2 days or more,
-- 10 times or more, where a person counts as 10, and nobody was answered below 400 since. A path is invented if people
-- were sent to it, it is no link and nobody was answered below 400 on any of the 28 days: the AI product made it up.
WITH paths AS (
    SELECT
        domain, path, max(short_code) AS short_code, max(visited_at) FILTER (is_answered(status)) AS answered_at,
        total_if(1, is_missed AND NOT is_referral(bot_category)) AS agent_fetches,
        total_if(1, is_missed AND is_referral(bot_category)) AS ai_referrals,
        total_if(1, is_missed AND confidence = 'verified') AS verified,
        count(DISTINCT day) FILTER (is_missed) AS days,
        min(visited_at) FILTER (is_missed) AS first_seen, max(visited_at) FILTER (is_missed) AS last_seen
    FROM (SELECT *, is_not_found(status) AND is_ai(bot_category) AND NOT is_malicious AS is_missed FROM visits_in_scope)
    WHERE path <> '' AND NOT is_asked_of_every_host(path)
    GROUP BY domain, path
), broken AS (
    SELECT paths.*, ai_referrals > 0 AND answered_at IS NULL AND path <> '/' AND links.short_code IS NULL AS is_invented
    FROM paths LEFT JOIN (SELECT DISTINCT short_code FROM links_in_scope) AS links ON links.short_code = paths.short_code
    WHERE days > 0 AND is_found(
        days >= 2 AND agent_fetches + 10 * ai_referrals >= 10 AND coalesce(answered_at <= last_seen, TRUE))
)
SELECT domain, path, short_code, is_invented, agent_fetches, ai_referrals, verified, days, first_seen, last_seen
FROM broken
QUALIFY row_number() OVER (
    PARTITION BY is_invented ORDER BY agent_fetches + 10 * ai_referrals DESC, domain, path) <= 100
ORDER BY agent_fetches + 10 * ai_referrals DESC, domain, path;

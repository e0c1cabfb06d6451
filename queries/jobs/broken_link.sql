-- Missing paths that AI products, or people whom they sent, request: 404 or 410 on at least 2 days, at least 10 times
-- (a person counts as 10), and no answer below 400 since. A path is invented by the AI product if people were sent to
-- it, no link has it and no answer is below 400 on any of the 28 days. The requests of a single browser or visitor are
-- a flood.
WITH paths AS (
    SELECT domain, path, max(short_code) AS code, max(visited_at) FILTER (is_answered(status)) AS answered_at
    FROM detected_visits() GROUP BY domain, path
), broken AS (
    SELECT
        missed.*, paths.code, missed.failures - missed.people AS agent_fetches, missed.people AS ai_referrals,
        missed.people > 0 AND paths.answered_at IS NULL AND missed.path <> '/' AND links.short_code IS NULL AS is_invented
    FROM shared('failing_paths') AS missed
    JOIN paths ON paths.domain IS NOT DISTINCT FROM missed.domain AND paths.path = missed.path
    LEFT JOIN (SELECT DISTINCT short_code FROM links_in_scope) AS links ON links.short_code = paths.code
    WHERE missed.kind = 'broken_link' AND meets('missing on one day only', missed.days >= 2)
        AND meets('requested fewer than 10 times', missed.failures + 9 * missed.people >= 10)
        AND meets('answered since', coalesce(paths.answered_at <= missed.last_seen, TRUE))
        AND meets('a flood by one browser or visitor', NOT missed.is_flood)
)
SELECT
    domain, path, code AS short_code, is_invented, agent_fetches, ai_referrals, verified, audience, visitors,
    top_agent, top_share, days, first_seen, last_seen
FROM broken
QUALIFY row_number() OVER (PARTITION BY is_invented ORDER BY agent_fetches + 10 * ai_referrals DESC, domain, path) <= 100
ORDER BY agent_fetches + 10 * ai_referrals DESC, domain, path;

-- Daily visits by people, including AI referrals, to each of the 50 links with the most visits.
WITH links AS (
    SELECT short_code, domain, total(human_clicks) + total(ai_referrals) AS visits
    FROM daily_links GROUP BY short_code, domain HAVING is_link(short_code, domain, bool_or(is_answered))
), ranked AS (
    SELECT *, row_number() OVER (ORDER BY visits DESC, short_code, coalesce(domain, 'unknown')) AS place FROM links
)
SELECT
    visited.short_code, coalesce(visited.domain, 'unknown') AS domain, day AS date,
    total(human_clicks) + total(visited.ai_referrals) AS visits
FROM daily_links AS visited
JOIN ranked ON ranked.short_code = visited.short_code AND ranked.domain IS NOT DISTINCT FROM visited.domain
WHERE place <= 50 AND human_clicks + visited.ai_referrals > 0
GROUP BY visited.short_code, visited.domain, day
ORDER BY short_code, domain, date;

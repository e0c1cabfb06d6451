-- Daily visits by name, for the 50 named agents and the 50 referrers with the most visits. Visits by referrer are
-- by people, including AI referrals.
WITH named AS (
    SELECT 'agent' AS subject, agent AS name, day, visits FROM daily_agents
    WHERE agent IS NOT NULL AND operator IS NOT NULL AND agent <> '(other)'
    UNION ALL
    SELECT 'referrer', referrer, day, visits FROM daily_referrers
    WHERE referrer IS NOT NULL AND referrer <> '(other)' AND coalesce(referrer_type, '') <> 'internal'
), totals AS (
    SELECT subject, name, total(visits) AS visits FROM named GROUP BY subject, name
), ranked AS (
    SELECT subject, name, row_number() OVER (PARTITION BY subject ORDER BY visits DESC, name) AS place FROM totals
)
SELECT named.subject, named.name, day AS date, total(visits) AS visits
FROM named JOIN ranked ON ranked.subject = named.subject AND ranked.name = named.name
WHERE place <= 50 AND visits > 0
GROUP BY named.subject, named.name, day
ORDER BY subject, name, date;

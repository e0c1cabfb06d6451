-- Daily visits by name, for the 20 named agents and the 20 referrers with the most visits, and for up to 20 of each
-- that had no visits in the first half of the days. Visits by referrer are by people, including AI referrals.
WITH named AS (
    SELECT 'agent' AS subject, agent AS name, day, visits FROM daily_agents
    WHERE agent IS NOT NULL AND operator IS NOT NULL AND agent <> '(other)' AND visits > 0
    UNION ALL
    SELECT 'referrer', referrer, day, visits FROM daily_referrers
    WHERE referrer IS NOT NULL AND referrer <> '(other)' AND coalesce(referrer_type, '') <> 'internal' AND visits > 0
), numbered AS (
    SELECT day, row_number() OVER (ORDER BY day) AS number, count(*) OVER () AS days FROM days_in_scope
), totals AS (
    SELECT
        subject, name, total(visits) AS visits,
        min(day) >= (SELECT min(day) FROM numbered WHERE 2 * number > days + 1) AS is_new
    FROM named GROUP BY subject, name
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY subject, is_new ORDER BY visits DESC, name) AS place FROM totals
)
SELECT named.subject, named.name, day AS date, total(named.visits) AS visits
FROM named JOIN ranked ON ranked.subject = named.subject AND ranked.name = named.name
WHERE place <= 20
GROUP BY named.subject, named.name, day
ORDER BY subject, name, date;

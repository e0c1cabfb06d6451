-- Agents with impostors, from outside their operator's addresses: at least 50 visits, or 5 that probe for
-- vulnerabilities, on at least 2 days, and in the last 7 days not all refused (401, 402, 403, 405, 406, 429, 451).
SELECT
    domain, agent, count(*) AS visits, total_if(1, is_malicious) AS probes,
    total_if(1, is_refused(status)) AS refused, 'other' AS audience, count(DISTINCT visitor) AS visitors,
    count(DISTINCT day) AS days,
    min(visited_at) AS first_seen, max(visited_at) AS last_seen
FROM detected_visits()
WHERE confidence = 'contradicted' AND agent IS NOT NULL
GROUP BY domain, agent
HAVING meets('fewer than 50 visits and fewer than 5 probes', count(*) >= 50 OR total_if(1, is_malicious) >= 5)
    AND meets('on one day only', count(DISTINCT day) >= 2)
    AND meets('always refused, or absent, in the last 7 days', total_if(1, is_in_last_days(day, 7) AND NOT is_refused(status)) > 0)
ORDER BY visits DESC, domain, agent
LIMIT 100;

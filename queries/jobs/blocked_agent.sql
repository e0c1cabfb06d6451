-- Assistants and coding agents that are refused (401, 402 Payment Required, 403, 405, 406, 429 or 451): at least 20
-- times, on at least 2 days, in at least half of their fetches, and still in the last 7 days if they came then.
SELECT
    domain, agent, max(operator) AS operator, max(ai_source) AS ai_source, count(*) AS agent_fetches,
    total_if(1, is_refused) AS refused, total_if(1, status = 402) AS asked_to_pay,
    share(total_if(1, is_refused), count(*)) AS percentage,
    array_to_string(list_sort(list(DISTINCT status) FILTER (is_refused)), ', ') AS statuses,
    total_if(1, is_refused AND confidence = 'verified') AS verified, 'AI' AS audience,
    count(DISTINCT visitor) FILTER (is_refused) AS visitors,
    count(DISTINCT day) FILTER (is_refused) AS days,
    min(visited_at) FILTER (is_refused) AS first_seen, max(visited_at) FILTER (is_refused) AS last_seen
FROM (SELECT *, is_refused(status) AS is_refused, is_in_last_days(day, 7) AS is_recent FROM detected_visits())
WHERE bot_category IN ('ai_assistant', 'ai_coding_agent') AND agent IS NOT NULL AND is_evidence(is_malicious, confidence, signals)
GROUP BY domain, agent
HAVING meets('refused fewer than 20 times', total_if(1, is_refused) >= 20)
    AND meets('refused on one day only', count(DISTINCT day) FILTER (is_refused) >= 2)
    AND meets('refused in less than half of the fetches', 2 * total_if(1, is_refused) >= count(*))
    AND meets('refused in less than half of the fetches in the last 7 days',
        2 * total_if(1, is_refused AND is_recent) >= total_if(1, is_recent))
ORDER BY refused DESC, domain, agent
LIMIT 100;

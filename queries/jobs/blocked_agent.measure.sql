-- Fetches by the assistant or coding agent at the domain, and how many of them were refused.
SELECT number, day, total_if(1, is_refused(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.agent = subject.agent
WHERE bot_category IN ('ai_assistant', 'ai_coding_agent') AND is_evidence(is_malicious, confidence, signals)
GROUP BY number, day
ORDER BY number, day;

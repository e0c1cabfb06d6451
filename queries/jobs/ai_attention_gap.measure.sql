-- Fetches of the link by assistants, and the people whom AI products sent to it. More is better.
SELECT
    number, day, total_if(1, is_referral(bot_category)) AS events, total_if(1, agent_kind = 'assistant_fetch') AS visits
FROM visits_with_aside AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.short_code = subject.short_code
WHERE visits.ai_source IS NOT NULL AND is_answered(status) AND is_evidence(is_malicious, confidence, signals)
    AND (is_referral(bot_category) OR agent_kind = 'assistant_fetch')
GROUP BY number, day
ORDER BY number, day;

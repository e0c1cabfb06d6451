-- Visits to the domain by search crawlers and agents of AI products, and how many of them were by the operator's training
-- crawlers: people and other bots change nothing.
SELECT
    number, day, total_if(1, bot_category = 'ai_training' AND visits.operator = subject.operator) AS events,
    count(*) AS visits
FROM visits_with_aside AS visits JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
WHERE bot_category IN ('search_crawler', 'ai_training', 'ai_assistant', 'ai_coding_agent')
    AND is_evidence(is_malicious, confidence, signals)
GROUP BY number, day
ORDER BY number, day;

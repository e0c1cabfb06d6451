-- Visits to the domain, and how many of them were by the operator's training crawlers.
SELECT
    day, total_if(1, bot_category = 'ai_training' AND visits.operator = subject.operator) AS events, count(*) AS visits
FROM visits_in_scope AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
GROUP BY day
ORDER BY day;

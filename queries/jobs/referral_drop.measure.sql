-- Visits of people to the link, and how many of them the AI product sent. Better the more.
SELECT
    day, total_if(1, is_referral(bot_category) AND visits.ai_source = subject.ai_source) AS events, count(*) AS visits
FROM visits_in_scope AS visits
JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain AND visits.short_code = subject.short_code
WHERE is_person(bot_category)
GROUP BY day
ORDER BY day;

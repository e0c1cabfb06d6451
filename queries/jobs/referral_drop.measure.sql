-- People whom AI products sent to the domain, and how many of them the job's product sent to its link: other people,
-- such as visitors from a campaign, change nothing. More is better.
SELECT
    number, day, total_if(1, visits.short_code = subject.short_code AND visits.ai_source = subject.ai_source) AS events,
    count(*) AS visits
FROM visits_with_aside AS visits JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
WHERE is_referral(bot_category) AND is_evidence(is_malicious, confidence, signals)
GROUP BY number, day
ORDER BY number, day;

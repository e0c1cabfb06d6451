-- Visits by search crawlers and agents of AI products, and how many of them were by agents of the plan and not refused.
-- Requests for robots.txt are left out: an obedient crawler must read it.
SELECT
    number, day, total_if(1, contains(', ' || subject.agent || ',', ', ' || visits.agent || ',')
        AND NOT is_refused(status) AND visits.path <> '/robots.txt') AS events,
    count(*) AS visits
FROM visits_with_aside AS visits JOIN subject ON subject.domain IS NULL OR visits.domain = subject.domain
WHERE bot_category IN ('search_crawler', 'ai_training', 'ai_assistant', 'ai_coding_agent') AND subject.agent IS NOT NULL
GROUP BY number, day
ORDER BY number, day;

-- Requests by search and AI crawlers, except HEAD, for pages of admin areas and addresses that delete or sign out, and how
-- many of them got 200 to 299.
SELECT number, day, total_if(1, is_success(status)) AS events, count(*) AS visits
FROM visits_with_aside AS visits JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
WHERE bot_category IN ('search_crawler', 'ai_training', 'ai_assistant') AND is_evidence(is_malicious, confidence, signals)
    AND coalesce(method <> 'HEAD', TRUE) AND NOT is_file AND is_inside(visits.path)
GROUP BY number, day
ORDER BY number, day;

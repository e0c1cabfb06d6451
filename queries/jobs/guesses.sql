-- The links and answered paths with the most similar spelling to a job's path: guesses, the likeliest first.
WITH named AS (
    SELECT '/' || links.short_code AS path, links.target_url, 0 AS visits
    FROM links_in_scope AS links JOIN subject ON links.domain IN ('', coalesce(subject.domain, ''))
    UNION ALL
    SELECT visits.path, NULL AS target_url, count(*) AS visits
    FROM visits_with_aside AS visits JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
    WHERE is_answered(visits.status) AND visits.path <> '' AND NOT visits.is_malicious
    GROUP BY visits.path
), living AS (
    SELECT path, max(target_url) AS target_url, total(visits) AS visits
    FROM named
    GROUP BY path
    HAVING max(target_url) IS NOT NULL OR total(visits) >= 3
)
SELECT
    living.path, living.target_url, living.visits,
    round(jaro_winkler_similarity(living.path, subject.path), 3) AS similarity
FROM living JOIN subject ON living.path <> subject.path
WHERE jaro_winkler_similarity(living.path, subject.path) >= 0.9
ORDER BY jaro_winkler_similarity(living.path, subject.path) DESC, visits DESC, path
LIMIT 3;

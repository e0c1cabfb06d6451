-- Visits to the path by people and AI products, and how many of them got 500 to 599. Only the first three visits of a
-- visitor's day count, so that a visitor with a thousand visits does not outweigh the others.
SELECT number, day, total_if(1, status BETWEEN 500 AND 599) AS events, count(*) AS visits
FROM (
    SELECT number, day, status, visitor, row_number() OVER (
        PARTITION BY number, day, visitor ORDER BY visited_at, coalesce(status, 0)) AS turn
    FROM visits_with_aside AS visits
    JOIN subject ON visits.domain IS NOT DISTINCT FROM subject.domain
        AND template_of(visits.path, visits.short_code) = subject.path
    WHERE (is_person(bot_category) OR is_ai(bot_category)) AND is_evidence(is_malicious, confidence, signals)
)
WHERE visitor IS NULL OR turn <= 3
GROUP BY number, day
ORDER BY number, day;

-- The visits that daily_links counts while the scope filters by a word. The status of visits to an answered link is NULL,
-- so that they count as answered.
CREATE VIEW visits_with_known_answers AS
SELECT visits.* REPLACE (CASE WHEN answered.short_code IS NULL THEN status END AS status)
FROM visits_to_count_with_aside('daily_links') AS visits
LEFT JOIN shared('answered_links') AS answered
    ON answered.short_code = visits.short_code AND answered.domain IS NOT DISTINCT FROM visits.domain;

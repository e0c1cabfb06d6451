-- The visits that daily_links counts while the scope filters by a word. Whether a short code is a link depends on its days
-- and domain only: where any visit was answered, those in scope count as answered, too, having no status.
CREATE VIEW visits_with_known_answers AS
WITH answers AS (
    SELECT short_code, domain FROM read_visits(getvariable('uncovered_files'))
    WHERE has_word() AND short_code IS NOT NULL AND is_answered(status)
    UNION ALL
    SELECT short_code, domain FROM stored_rows('daily_links')
    WHERE has_word() AND for_domain IS NULL AND short_code IS NOT NULL AND is_answered
), answered AS (
    SELECT DISTINCT short_code, domain FROM answers
)
SELECT visits.* REPLACE (CASE WHEN answered.short_code IS NULL THEN status END AS status)
FROM visits_to_count('daily_links') AS visits
LEFT JOIN answered
    ON answered.short_code = visits.short_code AND answered.domain IS NOT DISTINCT FROM visits.domain;

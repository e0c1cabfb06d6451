-- The short codes with an answered visit in the days of the scope, counted or set aside, regardless of the scope's
-- other filters. They are read only while the scope filters by a word, which does not change which codes are links.
CREATE VIEW answered_links AS
SELECT DISTINCT short_code, domain
FROM (
    SELECT short_code, domain FROM read_visits_with_aside(getvariable('uncovered_files'))
    WHERE has_word() AND short_code IS NOT NULL AND is_answered(status)
    UNION ALL
    SELECT short_code, domain FROM stored_rows('daily_links')
    WHERE has_word() AND for_domain IS NULL AND short_code IS NOT NULL AND is_answered
);

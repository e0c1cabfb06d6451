-- The short codes of which any visit in the days of the scope was answered, counted or set aside, whatever else the
-- scope filters by. They are looked for where a word filters: it decides about visits and not about what is a link.
CREATE VIEW answered_links AS
SELECT DISTINCT short_code, domain
FROM (
    SELECT short_code, domain FROM read_visits_with_aside(getvariable('uncovered_files'))
    WHERE has_word() AND short_code IS NOT NULL AND is_answered(status)
    UNION ALL
    SELECT short_code, domain FROM stored_rows('daily_links')
    WHERE has_word() AND for_domain IS NULL AND short_code IS NOT NULL AND is_answered
);

-- Values to filter by that occur on the days of the scope, with their visits; the scope's other filters are ignored.
-- A row with 0 visits stands for visits set aside; answers omit it.
CREATE VIEW filterable_values AS
SELECT domain, short_code, NULL AS bot_category, NULL AS ai_source, visits, is_answered
FROM stored_rows('daily_links') WHERE for_domain IS NULL
UNION ALL BY NAME
SELECT bot_category, ai_source, visits FROM stored_rows('daily_categories') WHERE for_domain IS NULL
UNION ALL BY NAME
SELECT
    domain, short_code, bot_category, ai_source, count(*) FILTER (is_counted(aside_bits)) AS visits,
    bool_or(is_answered(status)) AS is_answered
FROM read_visits_with_aside(getvariable('uncovered_files')) GROUP BY ALL;

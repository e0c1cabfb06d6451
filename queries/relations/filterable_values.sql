-- What can be filtered for in the days of the scope, whatever the caller filters for now.
CREATE VIEW filterable_values AS
SELECT domain, short_code, bot_category, ai_source FROM stored_rows('monthly_link_sources') WHERE for_domain IS NULL
UNION ALL
SELECT domain, short_code, bot_category, ai_source FROM read_visits(getvariable('uncovered_files')) GROUP BY ALL;

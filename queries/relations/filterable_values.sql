-- Values to filter by that occur in the days of the scope; the other filters of the scope are ignored.
CREATE VIEW filterable_values AS
SELECT domain, short_code, bot_category, ai_source FROM stored_rows('monthly_link_sources') WHERE for_domain IS NULL
UNION ALL
SELECT domain, short_code, bot_category, ai_source FROM read_visits(getvariable('uncovered_files')) GROUP BY ALL;

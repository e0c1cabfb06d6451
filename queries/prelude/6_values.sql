-- What can be filtered for, whatever the caller filters for now.
CREATE VIEW values_in_days AS
SELECT domain, short_code, bot_category, ai_source FROM cubed('link_sources') WHERE for_domain IS NULL
UNION ALL
SELECT domain, short_code, bot_category, ai_source FROM visits_of(getvariable('open_files')) GROUP BY ALL;

-- While a cube is made, every visit counts twice: for all domains together, and for its own.
CREATE OR REPLACE VIEW raw_visits AS
SELECT CAST(NULL AS VARCHAR) AS for_domain, * FROM visits_of(getvariable('open_files'))
UNION ALL
SELECT domain AS for_domain, * FROM visits_of(getvariable('open_files')) WHERE domain IS NOT NULL;

CREATE OR REPLACE VIEW raw_automata AS FROM raw_visits WHERE NOT is_human(bot_category);

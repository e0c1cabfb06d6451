-- Visits and visitors of each day by country.
-- Serves: country
CREATE VIEW daily_countries_counted AS
SELECT
    for_domain, day, country, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, count(visitor) AS unique_visitors
FROM (
    SELECT
        for_domain, day, country, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits
    FROM visits_to_count('daily_countries') GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_countries_stored AS
SELECT for_domain, day, country, visits, human_clicks, ai_visits, unique_visitors
FROM rollup_rows('daily_countries') WHERE matches(country, getvariable('country'));

CREATE VIEW daily_countries AS FROM query_table(parts_of('daily_countries'), TRUE);

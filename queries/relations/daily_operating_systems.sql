-- Visits and visitors of each day by operating system; people only, including AI referrals.
-- Serves: operating_system
CREATE VIEW daily_operating_systems_counted AS
SELECT
    for_domain, day, operating_system, total(visits) AS visits, total(human_clicks) AS human_clicks,
    count(visitor) AS unique_visitors
FROM (
    SELECT
        for_domain, day, operating_system, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks
    FROM visits_to_count('daily_operating_systems') WHERE is_person(bot_category) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_operating_systems_stored AS
SELECT
    for_domain, day, operating_system, visits, human_clicks, unique_visitors
FROM rollup_rows('daily_operating_systems') WHERE matches(operating_system, getvariable('operating_system'));

CREATE VIEW daily_operating_systems AS FROM query_table(parts_of('daily_operating_systems'), TRUE);

-- Visits and visitors of each day by browser; people only, including AI referrals.
-- Serves: browser
CREATE VIEW daily_browsers_counted AS
SELECT
    for_domain, day, browser, total(visits) AS visits, total(human_clicks) AS human_clicks,
    count(visitor) AS unique_visitors
FROM (
    SELECT
        for_domain, day, browser, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks
    FROM visits_to_count('daily_browsers') WHERE is_person(bot_category) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_browsers_stored AS
SELECT for_domain, day, browser, visits, human_clicks, unique_visitors
FROM rollup_rows('daily_browsers') WHERE matches(browser, getvariable('browser'));

CREATE VIEW daily_browsers AS FROM query_table(parts_of('daily_browsers'), TRUE);

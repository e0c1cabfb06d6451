-- Visits and visitors of each day by browser; people only, referred by AI or not.
CREATE VIEW daily_browsers AS
SELECT
    day,
    browser,
    total(visits) AS visits,
    total(human_clicks) AS human_clicks,
    count(visitor) AS unique_visitors
FROM (
    SELECT
        day,
        browser,
        visitor,
        count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks
    FROM people_in_scope
    GROUP BY day, browser, visitor
)
GROUP BY day, browser;

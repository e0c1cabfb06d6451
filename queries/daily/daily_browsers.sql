-- Visits and visitors of each day by browser; people only, referred by AI or not.
CREATE VIEW daily_browsers AS
SELECT
    day,
    browser,
    count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(DISTINCT visitor) AS unique_visitors
FROM people_in_scope GROUP BY day, browser;

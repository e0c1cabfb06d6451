-- Visits and visitors of each day by operating system; people only, referred by AI or not.
CREATE VIEW daily_operating_systems AS
SELECT
    day,
    operating_system,
    total(visits) AS visits,
    total(human_clicks) AS human_clicks,
    count(visitor) AS unique_visitors
FROM (
    SELECT
        day,
        operating_system,
        visitor,
        count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks
    FROM people_in_scope
    GROUP BY day, operating_system, visitor
)
GROUP BY day, operating_system;

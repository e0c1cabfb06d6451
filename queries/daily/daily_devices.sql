-- Visits and visitors of each day by device type.
CREATE VIEW daily_devices AS
SELECT
    day,
    device_type,
    count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_ai(bot_category)) AS ai_visits,
    count(DISTINCT visitor) AS unique_visitors
FROM visits_in_scope GROUP BY day, device_type;

-- Visits of each day by hour and category.
CREATE VIEW daily_hours AS
SELECT day, hour_of(visited_at) AS hour, bot_category, count(*) AS visits
FROM visits_in_scope GROUP BY day, hour_of(visited_at), bot_category;

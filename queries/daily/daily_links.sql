-- Visits and visitors of each day by link; a visit to no link has no short code.
CREATE VIEW daily_links AS
SELECT
    day,
    short_code,
    domain,
    count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_ai(bot_category)) AS ai_visits,
    count(*) FILTER (is_other(bot_category)) AS other_visits,
    count(DISTINCT visitor) AS unique_visitors,
    max(visited_at) AS last_visit
FROM visits_in_scope GROUP BY day, short_code, domain;

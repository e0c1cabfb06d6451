-- Visits and visitors of each day by domain.
CREATE VIEW daily_domains AS
SELECT
    day,
    domain,
    count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_ai(bot_category)) AS ai_visits,
    count(*) FILTER (is_other(bot_category)) AS other_visits,
    count(DISTINCT visitor) AS unique_visitors
FROM visits_in_scope GROUP BY day, domain;

-- Visits and visitors of each day by link; short_code is NULL for visits that are not to a link.
CREATE VIEW daily_links AS
SELECT
    for_domain, day, short_code, domain, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(other_visits) AS other_visits, count(visitor) AS unique_visitors,
    max(last_visit) AS last_visit
FROM (
    SELECT
        for_domain, day, short_code, domain, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_other(bot_category)) AS other_visits, max(visited_at) AS last_visit
    FROM visits_to_count('daily_links') GROUP BY ALL
)
GROUP BY ALL
UNION ALL BY NAME
SELECT
    for_domain, day, short_code, domain, visits, human_clicks, ai_visits, other_visits, unique_visitors,
    last_visit
FROM rollup_rows('daily_links');

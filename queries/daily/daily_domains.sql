-- Visits and visitors of each day by domain.
CREATE VIEW raw_domains AS
SELECT
    for_domain, day, domain, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(other_visits) AS other_visits, count(visitor) AS unique_visitors
FROM (
    SELECT
        for_domain, day, domain, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_other(bot_category)) AS other_visits
    FROM raw_visits GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_domains AS
SELECT day, domain, visits, human_clicks, ai_visits, other_visits, unique_visitors
FROM counted('domains');

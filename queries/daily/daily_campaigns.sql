-- Visits and visitors of each day by campaign, of those that carry any utm word.
CREATE VIEW daily_campaigns AS
SELECT
    day,
    utm_source,
    utm_medium,
    utm_campaign,
    total(visits) AS visits,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    count(visitor) AS unique_visitors
FROM (
    SELECT
        day,
        utm_source,
        utm_medium,
        utm_campaign,
        visitor,
        count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits
    FROM visits_in_scope
    WHERE coalesce(utm_source, utm_medium, utm_campaign, utm_term, utm_content) IS NOT NULL
    GROUP BY day, utm_source, utm_medium, utm_campaign, visitor
)
GROUP BY day, utm_source, utm_medium, utm_campaign;

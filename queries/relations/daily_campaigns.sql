-- Visits and visitors of each day by campaign; only visits with at least one utm parameter.
-- Of each day, the 10,000 campaigns with the most visits, then (other).
-- Serves: utm_source, utm_campaign
CREATE VIEW daily_campaigns_counted AS
SELECT
    for_domain, day, utm_source, utm_medium, utm_campaign, total(visits) AS visits,
    total(human_clicks) AS human_clicks, total(ai_visits) AS ai_visits, count(visitor) AS unique_visitors
FROM (
    SELECT
        for_domain, day, utm_source, utm_medium, utm_campaign, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits
    FROM visits_to_count_from('daily_campaigns', 'visits_with_cut_campaigns', has_high_cardinality_days())
    WHERE coalesce(utm_source, utm_medium, utm_campaign, utm_term, utm_content) IS NOT NULL GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_campaigns_stored AS
SELECT
    for_domain, day, utm_source, utm_medium, utm_campaign, visits, human_clicks, ai_visits, unique_visitors
FROM rollup_rows('daily_campaigns')
WHERE matches(utm_source, getvariable('utm_source')) AND matches(utm_campaign, getvariable('utm_campaign'));

CREATE VIEW daily_campaigns AS FROM query_table(parts_of('daily_campaigns'), TRUE);

-- Daily visits and visitors by campaign; only visits with at least one utm parameter.
-- Each day has the 10,000 campaigns with the most visits; (other) has the rest.
-- Serves: utm_source, utm_campaign
CREATE VIEW daily_campaigns_counted AS
SELECT
    for_domain, day, utm_source, utm_medium, utm_campaign, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(ai_referrals) AS ai_referrals, total(other_visits) AS other_visits,
    count(visitor) AS unique_visitors, count(visitor) FILTER (human_clicks + ai_referrals > 0) AS people_visitors,
    count(visitor) FILTER (ai_visits > 0) AS ai_visitors, count(visitor) FILTER (ai_referrals > 0) AS referred_visitors,
    count(visitor) FILTER (other_visits > 0) AS bot_visitors
FROM (
    SELECT
        for_domain, day, utm_source, utm_medium, utm_campaign, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_referral(bot_category)) AS ai_referrals,
        count(*) FILTER (is_other(bot_category)) AS other_visits
    FROM visits_to_count_from('daily_campaigns', 'visits_with_cut_campaigns', has_high_cardinality_days())
    WHERE coalesce(utm_source, utm_medium, utm_campaign, utm_term, utm_content) IS NOT NULL GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_campaigns_stored AS
SELECT
    for_domain, day, utm_source, utm_medium, utm_campaign, visits, human_clicks, ai_visits, ai_referrals, other_visits,
    unique_visitors, people_visitors, ai_visitors, referred_visitors, bot_visitors
FROM rows_of_group('daily_campaigns')
WHERE matches(utm_source, getvariable('utm_source')) AND matches(utm_campaign, getvariable('utm_campaign'));

CREATE VIEW daily_campaigns AS FROM query_table(parts_of('daily_campaigns'), TRUE);

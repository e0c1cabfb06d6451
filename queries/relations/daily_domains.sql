-- Daily visits and visitors by domain.
-- Each day has the 10,000 domains with the most visits; (other) has the rest.
CREATE VIEW daily_domains_counted AS
SELECT
    for_domain, day, domain, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(ai_referrals) AS ai_referrals, total(other_visits) AS other_visits,
    count(visitor) AS unique_visitors, count(visitor) FILTER (human_clicks + ai_referrals > 0) AS people_visitors,
    count(visitor) FILTER (ai_visits > 0) AS ai_visitors, count(visitor) FILTER (ai_referrals > 0) AS referred_visitors,
    count(visitor) FILTER (other_visits > 0) AS bot_visitors
FROM (
    SELECT
        for_domain, day, domain, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_referral(bot_category)) AS ai_referrals,
        count(*) FILTER (is_other(bot_category)) AS other_visits
    FROM visits_to_count_from('daily_domains', 'visits_with_cut_domains', has_high_cardinality_days()) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_domains_stored AS
SELECT
    for_domain, day, domain, visits, human_clicks, ai_visits, ai_referrals, other_visits,
    unique_visitors, people_visitors, ai_visitors, referred_visitors, bot_visitors
FROM rows_of_group('daily_domains');

CREATE VIEW daily_domains AS FROM query_table(parts_of('daily_domains'), TRUE);

-- Daily visits and visitors by device type.
-- Serves: device_type
CREATE VIEW daily_devices_counted AS
SELECT
    for_domain, day, device_type, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(ai_referrals) AS ai_referrals, total(other_visits) AS other_visits,
    count(visitor) AS unique_visitors, count(visitor) FILTER (human_clicks + ai_referrals > 0) AS people_visitors,
    count(visitor) FILTER (ai_visits > 0) AS ai_visitors, count(visitor) FILTER (ai_referrals > 0) AS referred_visitors,
    count(visitor) FILTER (other_visits > 0) AS bot_visitors
FROM (
    SELECT
        for_domain, day, device_type, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_referral(bot_category)) AS ai_referrals,
        count(*) FILTER (is_other(bot_category)) AS other_visits
    FROM visits_to_count('daily_devices') GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_devices_stored AS
SELECT
    for_domain, day, device_type, visits, human_clicks, ai_visits, ai_referrals, other_visits,
    unique_visitors, people_visitors, ai_visitors, referred_visitors, bot_visitors
FROM rows_of_group('daily_devices') WHERE matches(device_type, getvariable('device_type'));

CREATE VIEW daily_devices AS FROM query_table(parts_of('daily_devices'), TRUE);

-- Daily visits and visitors by operating system; people only, including AI referrals.
-- Serves: operating_system
CREATE VIEW daily_operating_systems_counted AS
SELECT
    for_domain, day, operating_system, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_referrals) AS ai_referrals, count(visitor) AS unique_visitors,
    count(visitor) FILTER (ai_referrals > 0) AS referred_visitors
FROM (
    SELECT
        for_domain, day, operating_system, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_referral(bot_category)) AS ai_referrals
    FROM visits_to_count('daily_operating_systems') WHERE is_person(bot_category) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_operating_systems_stored AS
SELECT
    for_domain, day, operating_system, visits, human_clicks, ai_referrals, unique_visitors, referred_visitors
FROM rows_of_group('daily_operating_systems') WHERE matches(operating_system, getvariable('operating_system'));

CREATE VIEW daily_operating_systems AS FROM query_table(parts_of('daily_operating_systems'), TRUE);

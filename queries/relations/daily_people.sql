-- Daily visits by people, including AI referrals, and their visitors.
CREATE VIEW daily_people_counted AS
SELECT
    for_domain, day, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_referrals) AS ai_referrals, count(visitor) AS unique_visitors,
    count(visitor) FILTER (ai_referrals > 0) AS referred_visitors,
    total_if(visits, visitor IS NULL) AS unidentified_visits,
    total_if(ai_referrals, visitor IS NULL) AS unidentified_referrals
FROM (
    SELECT
        for_domain, day, visitor, count(*) AS visits, count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_referral(bot_category)) AS ai_referrals
    FROM visits_to_count('daily_people') WHERE is_person(bot_category) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_people_stored AS
SELECT
    for_domain, day, visits, human_clicks, ai_referrals, unique_visitors, referred_visitors, unidentified_visits,
    unidentified_referrals
FROM rows_of_group('daily_people');

CREATE VIEW daily_people AS FROM query_table(parts_of('daily_people'), TRUE);

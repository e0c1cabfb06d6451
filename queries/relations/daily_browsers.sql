-- Daily visits and visitors by browser; people only, including AI referrals.
-- Serves: browser
CREATE VIEW daily_browsers_counted AS
SELECT
    for_domain, day, browser, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_referrals) AS ai_referrals, count(visitor) AS unique_visitors,
    count(visitor) FILTER (ai_referrals > 0) AS referred_visitors
FROM (
    SELECT
        for_domain, day, browser, visitor, count(*) AS visits,
        count(*) FILTER (is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_referral(bot_category)) AS ai_referrals
    FROM visits_to_count('daily_browsers') WHERE is_person(bot_category) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_browsers_stored AS
SELECT for_domain, day, browser, visits, human_clicks, ai_referrals, unique_visitors, referred_visitors
FROM rows_of_group('daily_browsers') WHERE matches(browser, getvariable('browser'));

CREATE VIEW daily_browsers AS FROM query_table(parts_of('daily_browsers'), TRUE);

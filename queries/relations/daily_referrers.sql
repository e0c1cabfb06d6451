-- Visits of each day by referrer; people only, including AI referrals.
CREATE VIEW daily_referrers AS
SELECT
    for_domain, day, referrer, referrer_type, count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_referral(bot_category)) AS ai_referrals
FROM visits_to_count('daily_referrers') WHERE is_person(bot_category) GROUP BY ALL
UNION ALL BY NAME
SELECT
    for_domain, day, referrer, referrer_type, visits, human_clicks, ai_referrals
FROM rollup_rows('daily_referrers');

-- Daily visits by referrer; people only, including AI referrals.
-- Each day has the 10,000 referrers with the most visits; (other) has the rest.
-- Serves: referrer
CREATE VIEW daily_referrers_counted AS
SELECT
    for_domain, day, referrer, referrer_type, count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_referral(bot_category)) AS ai_referrals
FROM visits_to_count_from('daily_referrers', 'visits_with_cut_referrers', has_high_cardinality_days())
WHERE is_person(bot_category) GROUP BY ALL;

CREATE VIEW daily_referrers_stored AS
SELECT
    for_domain, day, referrer, referrer_type, visits, human_clicks, ai_referrals
FROM rows_of_group('daily_referrers') WHERE matches(coalesce(referrer, '(direct)'), getvariable('referrer'));

CREATE VIEW daily_referrers AS FROM query_table(parts_of('daily_referrers'), TRUE);

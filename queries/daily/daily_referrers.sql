-- Visits of each day by referrer; people only, referred by AI or not.
CREATE VIEW daily_referrers AS
SELECT
    day,
    referrer,
    referrer_type,
    count(*) AS visits,
    count(*) FILTER (is_human(bot_category)) AS human_clicks,
    count(*) FILTER (is_referral(bot_category)) AS ai_referrals
FROM people_in_scope GROUP BY day, referrer, referrer_type;

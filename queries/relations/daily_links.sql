-- Daily visits and visitors by short code, which is NULL for paths without one. Templates select links with is_link.
-- A row with 0 visits stands for a short code that was answered on that day, but only for visits that are not counted.
CREATE VIEW daily_links_counted AS
SELECT
    for_domain, day, short_code, domain, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(ai_referrals) AS ai_referrals, total(other_visits) AS other_visits,
    count(visitor) FILTER (visits > 0) AS unique_visitors,
    count(visitor) FILTER (human_clicks + ai_referrals > 0) AS people_visitors,
    count(visitor) FILTER (ai_visits > 0) AS ai_visitors, count(visitor) FILTER (ai_referrals > 0) AS referred_visitors,
    count(visitor) FILTER (other_visits > 0) AS bot_visitors, max(last_visit) AS last_visit,
    max(last_human) AS last_human, max(last_referral) AS last_referral, max(last_fetch) AS last_fetch,
    max(last_bot) AS last_bot, bool_or(is_answered) AS is_answered
FROM (
    SELECT
        for_domain, day, short_code, domain, visitor, count(*) FILTER (is_counted) AS visits,
        count(*) FILTER (is_counted AND is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_counted AND is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_counted AND is_referral(bot_category)) AS ai_referrals,
        count(*) FILTER (is_counted AND is_other(bot_category)) AS other_visits,
        max(visited_at) FILTER (is_counted) AS last_visit,
        max(visited_at) FILTER (is_counted AND is_human(bot_category)) AS last_human,
        max(visited_at) FILTER (is_counted AND is_referral(bot_category)) AS last_referral,
        max(visited_at) FILTER (is_counted AND is_ai(bot_category) AND NOT is_referral(bot_category)) AS last_fetch,
        max(visited_at) FILTER (is_counted AND is_other(bot_category)) AS last_bot,
        bool_or(is_answered(status)) AS is_answered
    FROM visits_to_count_with_answers('daily_links') GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_links_stored AS
SELECT
    for_domain, day, short_code, domain, visits, human_clicks, ai_visits, ai_referrals, other_visits, unique_visitors,
    people_visitors, ai_visitors, referred_visitors, bot_visitors, last_visit, last_human, last_referral, last_fetch,
    last_bot, is_answered
FROM rows_of_group('daily_links');

CREATE VIEW daily_links AS FROM query_table(parts_of('daily_links'), TRUE);

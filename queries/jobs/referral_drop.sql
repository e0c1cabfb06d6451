-- Links to which an AI product sent less than half as many people in the last 14 days as in the 14 days before, if
-- those were at least 20 people on at least 7 days, and if so few of all these people would come in the later half by
-- chance in less than 1 of 100 cases (exact: the lower tail of a binomial distribution with probability 1/2). Visitors
-- and the top agent are from the earlier days. The requests of a single browser or visitor are a flood.
WITH sent AS (
    SELECT
        domain, short_code, ai_source, count(*) AS n, total(early) AS referrals_before, total(1 - early) AS ai_referrals,
        count(DISTINCT day) FILTER (early = 1) AS days, count(DISTINCT visitor) FILTER (early = 1) AS visitors,
        top_of(of_name, name) AS top_agent, share(max(of_name), total(early)) AS top_share,
        is_flood(total(early), of_name, agent, of_visitor, visitor) AS is_flood, max(visited_at) AS last_seen
    FROM (
        SELECT *, sum(early) OVER (PARTITION BY domain, short_code, ai_source, name) AS of_name,
            sum(early) OVER (PARTITION BY domain, short_code, ai_source, visitor) AS of_visitor
        FROM (SELECT *, CASE WHEN is_in_last_days(day, 14) THEN 0 ELSE 1 END AS early,
            name_of(agent, user_agent) AS name FROM detected_visits())
        WHERE is_referral(bot_category) AND short_code IS NOT NULL AND ai_source IS NOT NULL
            AND is_evidence(is_malicious, confidence, signals)
    ) GROUP BY domain, short_code, ai_source
), tested AS (
    SELECT *, list_sum(list_transform(range(ai_referrals + 1),
        lambda k: exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * ln(2)))) AS probability
    FROM sent WHERE meets('at least half as many people as before', 2 * ai_referrals < referrals_before)
        AND meets('fewer than 20 people before', referrals_before >= 20) AND meets('on fewer than 7 days before', days >= 7)
        AND meets('a flood by one browser or visitor', NOT is_flood)
)
SELECT
    domain, short_code, ai_source, referrals_before, ai_referrals, referrals_before - ai_referrals AS lost_referrals,
    round(probability, 6) AS probability, 'people' AS audience, visitors, top_agent, top_share, last_seen
FROM tested WHERE meets('likely by chance', probability < 0.01)
ORDER BY lost_referrals DESC, domain, short_code, ai_source LIMIT 100;

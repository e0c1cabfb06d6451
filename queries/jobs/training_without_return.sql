-- Operators whose training crawlers make 20 % of a domain's visits or more, 100 visits or more, on 2 days or more, in
-- the last 7 days still, while their products (the AI sources of any of their agents) sent the domain nobody.
WITH daily AS (
    SELECT
        day, domain, operator, ai_source, bot_category, count(*) AS visits,
        total_if(1, confidence = 'verified') AS verified, min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM visits_in_scope GROUP BY ALL
), domains AS (
    SELECT domain, total(visits) AS visits FROM daily GROUP BY domain
), returned AS (
    SELECT DISTINCT referrals.domain, products.operator
    FROM (SELECT DISTINCT domain, ai_source FROM daily WHERE is_referral(bot_category)) AS referrals
    JOIN (SELECT DISTINCT operator, ai_source FROM daily WHERE operator IS NOT NULL) AS products USING (ai_source)
), crawled AS (
    SELECT
        domain, operator, total(visits) AS training_fetches, total(verified) AS verified, count(DISTINCT day) AS days,
        bool_or(is_in_last_days(day, 7)) AS is_recent, min(first_seen) AS first_seen, max(last_seen) AS last_seen
    FROM daily WHERE bot_category = 'ai_training' AND operator IS NOT NULL GROUP BY domain, operator
)
SELECT
    crawled.domain, crawled.operator, training_fetches, visits, share(training_fetches, visits) AS percentage, verified,
    days, first_seen, last_seen
FROM crawled JOIN domains ON domains.domain IS NOT DISTINCT FROM crawled.domain
ANTI JOIN returned ON returned.domain IS NOT DISTINCT FROM crawled.domain AND returned.operator = crawled.operator
WHERE is_found(training_fetches >= 100 AND 5 * training_fetches >= visits AND days >= 2 AND is_recent)
ORDER BY training_fetches DESC, crawled.domain, crawled.operator
LIMIT 100;

-- Operators whose training crawlers make 20 % of a domain's visits or more, 100 visits or more, on 2 days or more, in
-- the last 7 days still, while their products (the AI sources of any of their agents) sent the domain nobody.
WITH counts AS (
    SELECT domain, operator, ai_source, bot_category, count(*) AS visits FROM visits_in_scope GROUP BY ALL
), domains AS (
    SELECT domain, total(visits) AS visits FROM counts GROUP BY domain
), returned AS (
    SELECT DISTINCT referrals.domain, products.operator
    FROM (SELECT DISTINCT domain, ai_source FROM counts WHERE is_referral(bot_category)) AS referrals
    JOIN (SELECT DISTINCT operator, ai_source FROM counts WHERE operator IS NOT NULL) AS products USING (ai_source)
), crawled AS (
    SELECT
        domain, operator, count(*) AS training_fetches, total_if(1, confidence = 'verified') AS verified,
        count(DISTINCT visitor) AS visitors, count(DISTINCT day) AS days, bool_or(is_in_last_days(day, 7)) AS is_recent,
        min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM visits_in_scope WHERE bot_category = 'ai_training' AND operator IS NOT NULL GROUP BY domain, operator
)
SELECT
    crawled.domain, crawled.operator, training_fetches, visits, share(training_fetches, visits) AS percentage, verified,
    'AI' AS audience, visitors, days, first_seen, last_seen
FROM crawled JOIN domains ON domains.domain IS NOT DISTINCT FROM crawled.domain
ANTI JOIN returned ON returned.domain IS NOT DISTINCT FROM crawled.domain AND returned.operator = crawled.operator
WHERE is_found(training_fetches >= 100 AND 5 * training_fetches >= visits AND days >= 2 AND is_recent)
ORDER BY training_fetches DESC, crawled.domain, crawled.operator
LIMIT 100;

-- Operators whose training crawlers make at least 20 % of a domain's visits, at least 100 visits, on at least 2 days,
-- and still in the last 7 days, while their products (the AI sources of any of their agents) sent the domain no people.
WITH counts AS (
    SELECT
        domain, operator, ai_source, bot_category, CASE WHEN is_crawl THEN visitor END AS crawler,
        CASE WHEN is_crawl THEN agent END AS name, CASE WHEN is_crawl THEN day END AS crawled_on, count(*) AS visits,
        total_if(1, confidence = 'verified') AS verified, min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM (SELECT *, bot_category = 'ai_training' AND is_evidence(is_malicious, confidence, signals) AS is_crawl
        FROM detected_visits()) GROUP BY ALL
), domains AS (
    SELECT domain, total(visits) AS visits FROM counts GROUP BY domain
), returned AS (
    SELECT DISTINCT referrals.domain, products.operator
    FROM (SELECT DISTINCT domain, ai_source FROM counts WHERE is_referral(bot_category)) AS referrals
    JOIN (SELECT DISTINCT operator, ai_source FROM counts WHERE operator IS NOT NULL) AS products USING (ai_source)
), crawled AS (
    SELECT
        domain, operator, total(visits) AS training_fetches, total(verified) AS verified, count(DISTINCT crawler) AS visitors,
        top_of(of_name, name) AS top_agent, share(max(of_name), total(visits)) AS top_share, max(crawled_on) AS last_day,
        count(DISTINCT crawled_on) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
    FROM (SELECT *, sum(visits) OVER (PARTITION BY domain, operator, name) AS of_name FROM counts WHERE name IS NOT NULL)
    WHERE operator IS NOT NULL GROUP BY domain, operator
)
SELECT
    crawled.domain, crawled.operator, training_fetches, visits, share(training_fetches, visits) AS percentage, verified,
    'AI' AS audience, visitors, top_agent, top_share, days, first_seen, last_seen
FROM crawled JOIN domains ON domains.domain IS NOT DISTINCT FROM crawled.domain
ANTI JOIN returned ON returned.domain IS NOT DISTINCT FROM crawled.domain AND returned.operator = crawled.operator
WHERE meets('fewer than 100 fetches', training_fetches >= 100)
    AND meets('less than 20 % of the visits', 5 * training_fetches >= visits)
    AND meets('on one day only', days >= 2) AND meets('not in the last 7 days', is_in_last_days(last_day, 7))
ORDER BY training_fetches DESC, crawled.domain, crawled.operator LIMIT 100;

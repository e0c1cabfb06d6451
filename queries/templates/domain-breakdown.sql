-- Requests by domain, with the number of distinct short codes requested on each.
WITH codes AS (
    SELECT domain, count(DISTINCT short_code) AS short_codes FROM monthly_link_sources GROUP BY domain
), domains AS (
    SELECT
        domain,
        total(visits) AS visits,
        total(human_clicks) AS human_clicks,
        total(ai_visits) AS ai_visits,
        total(other_visits) AS other_visits,
        total(unique_visitors) AS unique_visitors
    FROM daily_domains GROUP BY domain
)
SELECT
    coalesce(domains.domain, 'unknown') AS domain,
    visits,
    share(visits, sum(visits) OVER ()) AS percentage,
    human_clicks,
    ai_visits,
    other_visits,
    short_codes,
    unique_visitors
FROM domains JOIN codes ON codes.domain IS NOT DISTINCT FROM domains.domain
ORDER BY visits DESC, domain;

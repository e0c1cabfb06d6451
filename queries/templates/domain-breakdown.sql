-- Requests by domain, with the number of links requested on each.
-- At most 1,000 rows: beyond that, the last one is (other).
WITH found AS (
    SELECT domain, visits, human_clicks, ai_visits, other_visits, unique_visitors, 0 AS short_codes FROM daily_domains
    UNION ALL BY NAME
    SELECT domain, 1 AS short_codes FROM daily_links
    GROUP BY domain, short_code HAVING count(last_visit) > 0 AND is_link(short_code, domain, bool_or(is_answered))
), domains AS (
    SELECT
        coalesce(domain, 'unknown') AS domain, total(visits) = 0 OR domain IS NOT DISTINCT FROM '(other)' AS is_cut,
        total(visits) AS visits, total(human_clicks) AS human_clicks, total(ai_visits) AS ai_visits,
        total(other_visits) AS other_visits, total(short_codes) AS short_codes, total(unique_visitors) AS unique_visitors
    FROM found GROUP BY domain
), listed AS (
    SELECT *, is_rest(is_cut, row_number() OVER (ORDER BY is_cut, visits DESC, domain), 1) AS is_rest FROM domains
)
SELECT
    or_other(domain, is_rest) AS domain,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(other_visits) AS other_visits,
    total(short_codes) AS short_codes,
    total(unique_visitors) AS unique_visitors
FROM listed
GROUP BY is_rest, 1
ORDER BY is_rest, visits DESC, domain;

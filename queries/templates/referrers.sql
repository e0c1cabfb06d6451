-- Requests by people, by referring host, with AI referrals counted separately.
-- At most 1,000 rows: beyond that, the last one is (other).
WITH hosts AS (
    SELECT
        coalesce(referrer, '(direct)') AS referrer, coalesce(referrer_type, 'direct') AS referrer_type,
        referrer IS NOT DISTINCT FROM '(other)' AS is_cut,
        total(visits) AS visits, total(human_clicks) AS human_clicks, total(ai_referrals) AS ai_referrals
    FROM daily_referrers GROUP BY ALL
), listed AS (
    SELECT *, is_rest(
        is_cut, row_number() OVER (ORDER BY is_cut, visits DESC, referrer, referrer_type), 1) AS is_rest
    FROM hosts
)
SELECT
    or_other(referrer, is_rest) AS referrer,
    or_other(referrer_type, is_rest) AS referrer_type,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_referrals) AS ai_referrals,
    or_other(source_of(referrer, referrer_type), is_rest) AS source
FROM listed
GROUP BY is_rest, 1, 2, 7
ORDER BY is_rest, visits DESC, referrer, referrer_type;

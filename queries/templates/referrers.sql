-- Requests by people, by referring host, with AI referrals counted separately.
SELECT
    coalesce(referrer, '(direct)') AS referrer,
    coalesce(referrer_type, 'direct') AS referrer_type,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_referrals) AS ai_referrals
FROM daily_referrers
GROUP BY coalesce(referrer, '(direct)'), coalesce(referrer_type, 'direct')
ORDER BY visits DESC, referrer, referrer_type;

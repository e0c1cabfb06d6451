-- Requests by people, including AI referrals, by operating system.
SELECT
    coalesce(operating_system, 'unknown') AS operating_system,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(unique_visitors) AS unique_visitors
FROM daily_operating_systems
GROUP BY coalesce(operating_system, 'unknown')
ORDER BY visits DESC, operating_system;

-- Requests by HTTP version; unknown if the log does not contain it.
SELECT
    coalesce(protocol, 'unknown') AS protocol,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(unique_visitors) AS unique_visitors
FROM daily_protocols
GROUP BY coalesce(protocol, 'unknown')
ORDER BY visits DESC, protocol;

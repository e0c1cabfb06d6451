-- Requests by device type. Automated requests have the type bot, whatever device their user agent names.
SELECT
    coalesce(device_type, 'unknown') AS device_type,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(unique_visitors) AS unique_visitors
FROM daily_devices
GROUP BY coalesce(device_type, 'unknown')
ORDER BY visits DESC, device_type;

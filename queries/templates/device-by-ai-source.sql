-- AI-related requests by AI source and device type. The percentage is within the AI source.
SELECT
    coalesce(ai_source, 'unknown') AS ai_source,
    coalesce(device_type, 'unknown') AS device_type,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER (PARTITION BY coalesce(ai_source, 'unknown'))) AS percentage
FROM daily_categories
WHERE is_ai(bot_category)
GROUP BY coalesce(ai_source, 'unknown'), coalesce(device_type, 'unknown')
ORDER BY visits DESC, ai_source, device_type;

-- AI-related requests by week and AI source.
SELECT week_of(day) AS week, coalesce(ai_source, 'unknown') AS ai_source, total(visits) AS visits
FROM daily_categories
WHERE is_ai(bot_category)
GROUP BY week_of(day), coalesce(ai_source, 'unknown')
ORDER BY week, visits DESC, ai_source;

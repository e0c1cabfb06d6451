-- AI-related requests by AI source: fetches by the source's agents, and visits by people whom it referred.
SELECT
    coalesce(ai_source, 'unknown') AS ai_source,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total_if(visits, NOT is_referral(bot_category)) AS agent_fetches,
    total_if(visits, is_referral(bot_category)) AS ai_referrals
FROM daily_categories
WHERE is_ai(bot_category)
GROUP BY coalesce(ai_source, 'unknown')
ORDER BY visits DESC, ai_source;

-- The number of requests, split into people, the four kinds of AI traffic and other automated traffic.
SELECT
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, bot_category = 'ai_assistant') AS ai_assistant_requests,
    total_if(visits, bot_category = 'ai_training') AS ai_training_requests,
    total_if(visits, bot_category = 'ai_coding_agent') AS ai_coding_agent_requests,
    total_if(visits, bot_category = 'ai_referral') AS ai_referral_requests,
    total_if(visits, is_other(bot_category)) AS other_visits,
    coalesce(share(total_if(visits, is_ai(bot_category)), total(visits)), 0) AS ai_percentage
FROM daily_categories
ORDER BY total_visits;

-- Requests in every week of the range, split as in the overview. A week is identified by its Monday.
SELECT
    week,
    total(visits) AS total_visits,
    total_if(visits, is_human(bot_category)) AS human_visits,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, bot_category = 'ai_assistant') AS ai_assistant_requests,
    total_if(visits, bot_category = 'ai_training') AS ai_training_requests,
    total_if(visits, bot_category = 'ai_coding_agent') AS ai_coding_agent_requests,
    total_if(visits, bot_category = 'ai_referral') AS ai_referral_requests,
    total_if(visits, is_other(bot_category)) AS other_visits,
    coalesce(share(total_if(visits, is_ai(bot_category)), total(visits)), 0) AS ai_pct
FROM weeks_in_scope LEFT JOIN daily_categories ON week_of(day) = week
GROUP BY week
ORDER BY week;

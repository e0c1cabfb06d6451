-- AI-related requests by day: fetches by purpose (asked, indexed, trained, coding), and people sent by AI products.
SELECT
    days_in_scope.day AS date,
    total_if(visits, purpose = 'asked') AS asked,
    total_if(visits, purpose = 'indexed') AS indexed,
    total_if(visits, purpose = 'trained') AS trained,
    total_if(visits, purpose = 'coding') AS coding,
    total_if(visits, is_referral(bot_category)) AS ai_referrals
FROM days_in_scope LEFT JOIN daily_categories ON daily_categories.day = days_in_scope.day
GROUP BY days_in_scope.day
ORDER BY date;

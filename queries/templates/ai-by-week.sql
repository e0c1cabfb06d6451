-- AI-related requests by week: fetches by purpose (asked, indexed, trained, coding), and people sent by AI products.
SELECT
    week AS week,
    total_if(visits, purpose = 'asked') AS asked,
    total_if(visits, purpose = 'indexed') AS indexed,
    total_if(visits, purpose = 'trained') AS trained,
    total_if(visits, purpose = 'coding') AS coding,
    total_if(visits, is_referral(bot_category)) AS ai_referrals
FROM weeks_in_scope LEFT JOIN daily_categories ON week_of(day) = week
GROUP BY week
ORDER BY week;

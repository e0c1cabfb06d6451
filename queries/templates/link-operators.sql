-- By AI operator: fetches of the links in scope before its products sent the first person, compared with chance.
WITH mine AS (
    SELECT coalesce(names.operator, ai_source, 'unknown') AS operator, is_referral, visited_at
    FROM ai_link_visits LEFT JOIN operators AS names ON name = ai_source
), firsts AS (
    SELECT operator, min(visited_at) AS first_person FROM mine WHERE is_referral GROUP BY operator
)
SELECT
    mine.operator, total_if(1, NOT is_referral) AS agent_fetches, total_if(1, is_referral) AS ai_referrals,
    CASE WHEN first_person IS NOT NULL
        THEN total_if(1, NOT is_referral AND visited_at < first_person) END AS fetches_before,
    CASE WHEN first_person IS NOT NULL
        THEN rate(total_if(1, NOT is_referral), 1 + total_if(1, is_referral)) END AS fetches_by_chance
FROM mine LEFT JOIN firsts ON firsts.operator = mine.operator
GROUP BY mine.operator, first_person
ORDER BY agent_fetches DESC, mine.operator;

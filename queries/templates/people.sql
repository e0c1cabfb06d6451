-- Requests by people, including AI referrals, and their daily visitors.
SELECT
    total(visits) AS visits,
    total(human_clicks) AS human_clicks,
    total(unique_visitors) AS unique_visitors,
    total(unidentified_visits) AS unidentified_visits
FROM daily_people
ORDER BY visits;

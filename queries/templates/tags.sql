-- Requests to links by tag: the 1,000 tags with the most requests. A request to a link with two tags counts under both.
SELECT
    tag,
    total(visits) AS visits,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(other_visits) AS other_visits,
    count(visitor) AS unique_visitors,
    total_if(1, visitor IS NOT NULL AND human_clicks + ai_referrals > 0) AS people_visitors,
    max(last_visit) AS last_visit
FROM tagged_visits
GROUP BY tag
ORDER BY visits DESC, tag
LIMIT 1000;

-- Paths at which people or AI products get 500 to 599: 20 times or more, on 2 days or more, in 5 % of their visits or
-- more, and in the last 7 days still, if they came in them.
SELECT
    domain, path, max(short_code) AS short_code, count(*) AS visits, total_if(1, is_error) AS errors,
    share(total_if(1, is_error), count(*)) AS percentage, total_if(1, is_error AND is_person(bot_category)) AS people,
    count(DISTINCT day) FILTER (is_error) AS days,
    min(visited_at) FILTER (is_error) AS first_seen, max(visited_at) FILTER (is_error) AS last_seen
FROM (
    SELECT *, coalesce(status BETWEEN 500 AND 599, FALSE) AS is_error, is_in_last_days(day, 7) AS is_recent
    FROM visits_in_scope
)
WHERE (is_person(bot_category) OR is_ai(bot_category)) AND path <> '' AND NOT is_malicious
GROUP BY domain, path
HAVING total_if(1, is_error) >= 20 AND count(DISTINCT day) FILTER (is_error) >= 2
    AND 20 * total_if(1, is_error) >= count(*)
    AND 20 * total_if(1, is_error AND is_recent) >= total_if(1, is_recent)
ORDER BY errors DESC, domain, path
LIMIT 100;

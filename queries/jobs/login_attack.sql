-- Logins under attack: at least 100 POST requests on a day tried to log in, made by programs, or by visitors with at
-- least 100 each. Refused and missing requests do not count, nor do permanent redirects (301, 308). At least one such day
-- is among the last 7.
WITH tried AS (
    SELECT
        domain, plain_path(path) AS path, day, visitor, name_of(agent, user_agent) AS name,
        is_person(bot_category) AS by_person, count(*) AS tries, min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM detected_visits() WHERE method = 'POST' AND is_login(plain_path(path)) AND is_tried(status) GROUP BY ALL
), counted AS (
    SELECT *, sum(tries) OVER (PARTITION BY domain, path, day) AS of_day
    FROM (SELECT *, sum(tries) OVER (PARTITION BY domain, path, day, visitor) AS of_visitor FROM tried)
    WHERE NOT by_person OR visitor IS NOT NULL AND of_visitor >= 100
)
SELECT
    domain, path, total(tries) AS visits, 'other' AS audience, count(DISTINCT visitor) AS visitors,
    top_of(of_name, name) AS top_agent, share(max(of_name), total(tries)) AS top_share, count(DISTINCT day) AS days,
    min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (SELECT *, sum(tries) OVER (PARTITION BY domain, path, name) AS of_name FROM counted WHERE meets('fewer than 100 attempts on each day', of_day >= 100))
GROUP BY domain, path HAVING meets('not in the last 7 days', is_in_last_days(max(day), 7))
ORDER BY visits DESC, domain, path
LIMIT 100;

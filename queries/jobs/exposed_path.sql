-- Secrets that vulnerability scanners ask for, and got: answered 200 to 299, also the last time. Where three or more of all the
-- paths that only they ask for have one size, or none is known, the domain answers whatever is asked: that is one finding,
-- a catch-all, with * as its path.
WITH asked AS (
    SELECT
        domain, path, name_of(agent, user_agent) AS name, visitor, day, count(*) AS probes,
        total_if(1, is_success(status)) AS answers, max(bytes_sent) FILTER (is_success(status)) AS size,
        min(visited_at) FILTER (is_success(status)) AS first_seen,
        max(visited_at) FILTER (is_success(status)) AS last_seen, max(visited_at) AS asked_at
    FROM detected_visits() WHERE is_malicious AND path <> '' GROUP BY ALL
), paths AS (
    SELECT domain, path, total(answers) AS of_path, max(size) AS size, count(DISTINCT day) FILTER (answers > 0) AS days
    FROM asked GROUP BY domain, path HAVING total(answers) > 0 AND max(last_seen) >= max(asked_at)
), alike AS (
    SELECT *, count(*) OVER (PARTITION BY domain, size) >= 3 AS is_catch_all FROM paths
), shown AS (
    SELECT asked.*, of_path, days, is_catch_all, CASE WHEN is_catch_all THEN '*' ELSE alike.path END AS subject
    FROM alike JOIN asked ON asked.domain IS NOT DISTINCT FROM alike.domain AND asked.path = alike.path
    WHERE is_catch_all OR is_found(is_secret(alike.path))
)
SELECT
    domain, subject AS path, is_catch_all, total(answers) AS answered, total(probes) AS probes,
    count(DISTINCT shown.path) AS paths, max(size) AS bytes_sent, three_of(ranked(of_path, shown.path)) AS top_paths,
    'other' AS audience, count(DISTINCT visitor) FILTER (answers > 0) AS visitors, top_of(of_name, name) AS top_agent,
    share(max(of_name), total(answers)) AS top_share, max(days) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (SELECT *, sum(answers) OVER (PARTITION BY domain, subject, name) AS of_name FROM shown) AS shown
GROUP BY domain, subject, is_catch_all
QUALIFY row_number() OVER (PARTITION BY is_catch_all ORDER BY total(answers) DESC, domain, subject) <= 100
ORDER BY answered DESC, domain, path;

-- Days on which a domain fails, whatever the paths: 500 to 599 for at least 100 requests, a fifth of that day's, and a
-- fifth of its visitors, none of whom makes half of them, apart from search crawlers and probes. One or two such days
-- are one finding. Other detectors find longer failures by their paths, or by search crawlers.
WITH counted AS (
    SELECT
        domain, day, path, name_of(agent, user_agent) AS name, agent, visitor, count(*) AS visits,
        total_if(1, is_error) AS errors, total_if(1, is_error AND is_person(bot_category)) AS people,
        min(visited_at) FILTER (is_error) AS first_seen, max(visited_at) FILTER (is_error) AS last_seen
    FROM (SELECT *, coalesce(status BETWEEN 500 AND 599, FALSE) AS is_error FROM detected_visits())
    WHERE path <> '' AND is_evidence(is_malicious, confidence, signals) AND bot_category <> 'search_crawler' GROUP BY ALL
), bad_days AS (
    SELECT domain, day, total(visits) AS of_day
    FROM (SELECT *, sum(errors) OVER (PARTITION BY domain, day, visitor) AS of_visitor FROM counted)
    GROUP BY domain, day
    HAVING meets('fewer than 100 errors on each day', total(errors) >= 100)
        AND meets('less than a fifth of the requests on each day', 5 * total(errors) >= total(visits))
        AND meets('less than a fifth of the visitors on each day',
            5 * count(DISTINCT visitor) FILTER (errors > 0) >= count(DISTINCT visitor))
        AND meets('one visitor got half of the errors',
            coalesce(2 * max(of_visitor) FILTER (visitor IS NOT NULL) < total(errors), TRUE))
), failed AS (
    SELECT
        counted.*, of_day, sum(errors) OVER (PARTITION BY counted.domain, path) AS of_path,
        sum(errors) OVER (PARTITION BY counted.domain, name) AS of_name,
        row_number() OVER (PARTITION BY counted.domain, counted.day ORDER BY path, name, visitor) AS turn
    FROM counted JOIN bad_days ON bad_days.domain IS NOT DISTINCT FROM counted.domain AND bad_days.day = counted.day
    WHERE errors > 0
)
SELECT
    domain, total_if(of_day, turn = 1) AS visits, total(errors) AS errors,
    share(total(errors), total_if(of_day, turn = 1)) AS percentage, total(people) AS people,
    CASE WHEN 2 * total(people) >= total(errors) THEN 'people' ELSE 'other' END AS audience,
    count(DISTINCT visitor) AS visitors, top_of(of_name, name) AS top_agent, share(max(of_name), total(errors)) AS top_share,
    three_of(ranked(of_path, path)) AS top_paths, count(DISTINCT day) AS days, min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM failed GROUP BY domain HAVING meets('on more than two days', count(DISTINCT day) <= 2)
ORDER BY errors DESC, domain LIMIT 100;

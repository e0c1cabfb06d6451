-- Secrets that vulnerability scanners ask for, and got: answered 200 to 299, also the last time. Where three or more of all the
-- paths that only they ask for have one size, or none is known, the domain answers whatever is asked: that is one finding,
-- a catch-all, with * as its path.
WITH paths AS (
    SELECT
        domain, path, count(*) AS probes, total_if(1, is_success(status)) AS answers,
        max(bytes_sent) FILTER (is_success(status)) AS size, count(DISTINCT day) FILTER (is_success(status)) AS days,
        min(visited_at) FILTER (is_success(status)) AS first_seen,
        max(visited_at) FILTER (is_success(status)) AS last_seen, max(visited_at) AS asked_at
    FROM visits_in_scope WHERE is_malicious AND path <> '' GROUP BY domain, path
), alike AS (
    SELECT *, count(*) OVER (PARTITION BY domain, size) >= 3 AS is_catch_all
    FROM paths WHERE answers > 0 AND last_seen >= asked_at
), shown AS (
    SELECT *, CASE WHEN is_catch_all THEN '*' ELSE path END AS subject
    FROM alike WHERE is_catch_all OR is_found(is_secret(path))
), answered AS (
    SELECT shown.domain, shown.subject, count(DISTINCT visits.visitor) AS visitors
    FROM shown JOIN visits_in_scope AS visits ON visits.domain IS NOT DISTINCT FROM shown.domain AND visits.path = shown.path
    WHERE visits.is_malicious AND is_success(visits.status) GROUP BY shown.domain, shown.subject
)
SELECT
    shown.domain, shown.subject AS path, is_catch_all, total(answers) AS answered, total(probes) AS probes,
    count(*) AS paths, max(size) AS bytes_sent, three_of(ranked(answers, path)) AS top_paths, 'other' AS audience,
    max(answered.visitors) AS visitors, max(days) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM shown
JOIN answered ON answered.domain IS NOT DISTINCT FROM shown.domain AND answered.subject = shown.subject
GROUP BY shown.domain, shown.subject, is_catch_all
QUALIFY row_number() OVER (PARTITION BY is_catch_all ORDER BY total(answers) DESC, shown.domain, shown.subject) <= 100
ORDER BY answered DESC, domain, path;

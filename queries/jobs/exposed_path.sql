-- Secrets that vulnerability scanners requested and got: 200 to 299, also the last time. A hidden folder is one finding,
-- such as /.git/*. An answer about as large as the home page, or as such answers in three folders, or exactly as large as
-- three, is not a secret: the domain answers any path. At least three such paths are one finding, a catch-all with * as its
-- path, unless pages of the site requested them, or all answers of the domain have one size: then it has no pages.
WITH asked AS (FROM probed_paths), domains AS (
    SELECT domain, max(size) IS NULL OR NOT is_like_size(min(least_size), max(size)) AS has_pages FROM asked GROUP BY domain
), paths AS (
    SELECT domain, path, total(answers) AS of_path, total(answers) = total(answers_to_site) AS is_of_site, max(size) AS size,
        count(DISTINCT day) FILTER (answers > 0) AS days
    FROM asked WHERE path IS NOT NULL GROUP BY domain, path HAVING total(answers) > 0 AND max(last_seen) >= max(asked_at)
), sizes AS (
    SELECT domain, size, first_folder(path) AS folder, count(*) AS number FROM paths WHERE NOT is_of_site GROUP BY ALL
    UNION ALL SELECT DISTINCT domain, size, '' AS folder, 0 AS number FROM asked WHERE is_home AND size IS NOT NULL
), alike AS (
    SELECT
        answers.domain, answers.size, count(DISTINCT folder) >= 3 OR coalesce(min(folder) = '', FALSE)
            OR total(CASE WHEN sizes.size IS NOT DISTINCT FROM answers.size THEN number ELSE 0 END) >= 3 AS is_alike
    FROM (SELECT DISTINCT domain, size FROM paths) AS answers
    LEFT JOIN sizes ON sizes.domain IS NOT DISTINCT FROM answers.domain AND is_like_size(answers.size, sizes.size)
    GROUP BY answers.domain, answers.size
), answered AS (
    SELECT paths.*, is_alike, has_pages,
        sum(CASE WHEN is_alike AND NOT is_of_site THEN 1 ELSE 0 END) OVER (PARTITION BY paths.domain) AS alike_paths
    FROM paths JOIN alike ON alike.domain IS NOT DISTINCT FROM paths.domain AND alike.size IS NOT DISTINCT FROM paths.size
    JOIN domains ON domains.domain IS NOT DISTINCT FROM paths.domain
), shown AS (
    SELECT asked.*, of_path, days, is_alike, CASE WHEN is_alike THEN '*' ELSE exposed_part(asked.path) END AS subject
    FROM answered JOIN asked ON asked.domain IS NOT DISTINCT FROM answered.domain AND asked.path = answered.path
    WHERE CASE WHEN is_alike THEN meets('fewer than three such paths', alike_paths >= 3) AND meets('no other answers', has_pages)
        AND meets('requested by pages of the site', NOT is_of_site) ELSE meets('not a secret', is_secret(asked.path)) END
)
SELECT
    domain, subject AS path, is_alike AS is_catch_all, total(answers) AS answered, total(probes) AS probes,
    count(DISTINCT shown.path) AS paths, max(size) AS bytes_sent, three_of(ranked(of_path, shown.path)) AS top_paths,
    'other' AS audience, count(DISTINCT visitor) FILTER (answers > 0) AS visitors, top_of(of_name, name) AS top_agent,
    share(max(of_name), total(answers)) AS top_share, max(days) AS days, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (SELECT *, sum(answers) OVER (PARTITION BY domain, subject, name) AS of_name FROM shown) AS shown
GROUP BY domain, subject, is_alike
QUALIFY row_number() OVER (PARTITION BY is_alike ORDER BY total(answers) DESC, domain, subject) <= 100
ORDER BY answered DESC, domain, path;

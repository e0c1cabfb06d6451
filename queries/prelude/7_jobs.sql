-- Macros that detectors and measures share. Reads one more session variable, subjects: the subjects of
-- jobs, by the columns that name them, each with a number. Measures join the view subject, which is empty while the
-- variable is unset.

CREATE TYPE subjects AS STRUCT(
    number BIGINT, domain VARCHAR, path VARCHAR, short_code VARCHAR, agent VARCHAR, operator VARCHAR, ai_source VARCHAR
)[];

CREATE VIEW subject AS SELECT unnest(CAST(getvariable('subjects') AS subjects), recursive := TRUE);

CREATE MACRO is_in_last_days(day, days) AS day > CAST(getvariable('scope').end_date AS DATE) - days;

-- Answers that refuse a visitor. 404 and 410 do not: the page is missing for all visitors.
CREATE MACRO is_refused(status) AS coalesce(status IN (401, 402, 403, 405, 406, 429, 451), FALSE);
CREATE MACRO is_not_found(status) AS coalesce(status IN (404, 410), FALSE);
CREATE MACRO is_redirected(status) AS coalesce(status BETWEEN 300 AND 399 AND status <> 304, FALSE);
CREATE MACRO is_success(status) AS coalesce(status BETWEEN 200 AND 299, FALSE);

-- Whether a request may show a problem of a site: not if only scanners request its target, nor if its visitor did that
-- on that day, or used an agent's name from outside its operator's addresses. A verified agent may.
CREATE MACRO is_evidence(is_malicious, confidence, signals) AS NOT is_malicious
    AND (coalesce(confidence, '') = 'verified'
        OR coalesce(confidence, '') <> 'contradicted' AND (coalesce(signals, 0) & probing_signals()) = 0);

-- Of the paths that only vulnerability scanners request, those that no site shows to people: all but logins and
-- consoles.
CREATE MACRO is_secret(path) AS path LIKE '%/.%' OR path LIKE '%.env%' OR path LIKE '%.sql%' OR path LIKE '%.sqlite%'
    OR path LIKE '%.bak%' OR path LIKE '%.old%' OR path LIKE '%.swp%' OR path LIKE '%.zip' OR path LIKE '%.rar'
    OR path LIKE '%.tar%' OR path LIKE '%.tgz' OR path LIKE '%.7z' OR path LIKE '%id_rsa%' OR path LIKE '%info.php%'
    OR path LIKE '%phpinfo%' OR path LIKE '%/_ignition/%' OR path LIKE '%/_profiler/%' OR path LIKE '%/telescope/%'
    OR path LIKE '%/actuator/%' OR path LIKE '%eval-stdin%' OR path LIKE '%wp-config%' OR path LIKE '%credentials%'
    OR path LIKE '%etc/passwd%' OR path LIKE '%etc/shadow%' OR path LIKE '%proc/self/%' OR path LIKE '%win.ini%';

-- A path as a server resolves it: dots and slashes decoded, and without spaces at its end, empty segments, /./ and up
-- to three /../ in a row.
CREATE MACRO without_parents(path) AS regexp_replace(path, '/([^/.][^/]*|[.][^/.][^/]*)/[.][.]/', '/', 'g');
CREATE MACRO decoded_path(path) AS regexp_replace(regexp_replace(regexp_replace(path, '( |%20)+$', ''),
    '%(25)?2[eE]', '.', 'g'), '%(25)?2[fF]', '/', 'g');
CREATE MACRO plain_path(path) AS regexp_replace(without_parents(without_parents(without_parents(
    regexp_replace(decoded_path(path), '/([.]?/)+', '/', 'g')))), '^(/[.][.])+/', '/');

-- Whether people log in there, by the last segment of the path; and whether an answer accepts the login attempt.
CREATE MACRO is_login(path) AS lower(path) LIKE '%/administrator/%'
    OR regexp_extract(lower(path), '([^/]*)/?$', 1) IN ('wp-login.php', 'xmlrpc.php', 'login', 'login.php', 'login.aspx',
        'login.jsp', 'login.html', 'log-in', 'logon', 'signin', 'sign-in', 'signin.php', 'administrator');
CREATE MACRO is_tried(status) AS coalesce(status BETWEEN 200 AND 299 OR status IN (302, 303, 401, 422), FALSE);

-- Answers that refuse people who should get the page; 499: they gave up waiting (nginx). A login answers 401.
CREATE MACRO refuses_people(status) AS coalesce(status IN (403, 429, 499), FALSE);

CREATE MACRO first_folder(path) AS regexp_extract(path, '^/?([^/]*)', 1);

-- Folders of texts, which may be about administration or deletion.
CREATE MACRO is_about(folder) AS folder IN ('blog', 'category', 'doc', 'docs', 'documentation', 'guide', 'guides', 'help',
    'kb', 'learn', 'manual', 'news', 'reference', 'support', 'tag', 'tags', 'tutorials', 'wiki');
-- Whether a path is in an admin area, by its first or second folder; authors and users may be named admin.
CREATE MACRO is_admin(path) AS regexp_extract(lower(path),
        '^(/(admin|dashboard|backend|manage)|(/[^/]+)?/(wp-admin|administrator|cpanel))(/|$)', 1) <> ''
    OR regexp_extract(lower(path), '^/[^/]+(/admin)(/|$)', 1) <> '' AND NOT is_about(first_folder(lower(path)))
    AND first_folder(lower(path)) NOT IN ('author', 'authors', 'member', 'members', 'profile', 'user', 'users');
-- Whether a path deletes something or signs out, by any of its segments.
CREATE MACRO is_deletion(path) AS NOT is_about(first_folder(lower(path))) AND
    regexp_extract(lower(path), '/((delete|remove|destroy)([-_]?item)?|log-?out)([.](php|aspx?|jsp))?(/|$)', 1) <> '';
-- Whether only the people in charge should get a path: in an admin area or deleting, except for pages to sign in, and
-- programs of WordPress that serve the site.
CREATE MACRO is_inside(path) AS (is_admin(path) OR is_deletion(path)) AND regexp_extract(lower(path),
    '(log-?[io]n|sign-?(in|up)|regist|passw|forgot|auth|/(admin-(ajax|post)|load-(styles|scripts))[.]php)', 1) = '';

-- The thing that a path exposes: its hidden folder with all its content, such as /.git/*, or the path itself.
CREATE MACRO hidden_folder(path) AS regexp_extract(path, '^(.*?/[.][^/]+/)', 1);
CREATE MACRO exposed_part(path) AS CASE WHEN hidden_folder(path) = '' THEN path ELSE hidden_folder(path) || '*' END;

-- Whether two answers have about the same size: at most 64 bytes or 5 % apart, or both unknown.
CREATE MACRO tolerance(size) AS CASE WHEN size < 1280 THEN 64 ELSE size // 20 END;
CREATE MACRO is_like_size(size, other) AS
    coalesce(size <= other + tolerance(size) AND other <= size + tolerance(size), size IS NULL AND other IS NULL);

-- Files that programs request from every host: a missing one is not a broken link.
CREATE MACRO is_asked_of_every_host(path) AS
    path IN ('/robots.txt', '/sitemap.xml', '/llms.txt', '/ads.txt', '/app-ads.txt', '/security.txt', '/humans.txt',
        '/browserconfig.xml', '/crossdomain.xml', '/manifest.json', '/site.webmanifest', '/autodiscover/autodiscover.xml')
    OR path LIKE '/.well-known/%' OR path LIKE '/favicon%' OR path LIKE '/apple-touch-icon%' OR path LIKE '/android-icon-%'
    OR path LIKE '/android-chrome-%' OR path LIKE '/mstile-%' OR path LIKE '/ms-icon-%';

-- The path of a job about many paths: * stands for segments that name a single thing (numbers, hexadecimal digits as in
-- UUIDs and hashes, long tokens), with or without an extension. Applied twice, for adjacent segments. The path of a link
-- is kept.
CREATE MACRO id_segment() AS
    '([0-9]+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{12,}|[0-9A-Za-z]{24,})([.][a-z0-9]{1,5})?';
CREATE MACRO template_of(path, short_code) AS CASE WHEN short_code IS NOT NULL THEN path ELSE
    regexp_replace(regexp_replace(regexp_replace(path, '/' || id_segment() || '$', '/*', 'g'),
        '/' || id_segment() || '/', '/*/', 'g'), '/' || id_segment() || '/', '/*/', 'g') END;

-- A word with its count as text: sorted by this, the most frequent comes first, and equal counts are sorted by word.
CREATE MACRO ranked(count, word) AS CAST(999999999999 - count AS VARCHAR) || word;
CREATE MACRO word_of(text) AS substr(text, 13);
CREATE MACRO three_of(texts) AS list_transform(list_sort(list(DISTINCT texts))[1:3], lambda text: word_of(text));

-- Who makes the requests of a subject. Each row has the number of requests by its agent or browser (of_name), and its
-- visitor.
CREATE MACRO name_of(agent, user_agent) AS coalesce(agent, user_agent, 'unknown');
CREATE MACRO top_of(of_name, name) AS word_of(min(ranked(of_name, name)));
-- A flood: at least ten requests, more than half of them by one browser (by its whole user agent), or half by one
-- visitor of a day.
CREATE MACRO is_flood(number, of_name, agent, of_visitor, visitor) AS number >= 10
    AND (coalesce(2 * max(of_name) FILTER (agent IS NULL) > number, FALSE)
        OR coalesce(2 * max(of_visitor) FILTER (visitor IS NOT NULL) >= number, FALSE));

-- Whether a subject meets a condition of a detector, with the reason why it is left out otherwise. While the variable explain
-- is set, only the conditions with the reasons in it must be met.
CREATE MACRO meets(reason, condition) AS condition OR coalesce(NOT list_contains(getvariable('explain'), reason), FALSE);

-- The visits in scope and the visits set aside, from memory if several detectors share them. With views that read them,
-- shared() would call itself.
CREATE MACRO detected_visits() AS TABLE
FROM query_table(
    CASE WHEN is_in_memory('visits_with_aside') THEN 'visits_with_aside_in_memory' ELSE 'visits_with_aside' END);

-- Requests by people, AI products and search crawlers, with the detector that counts them as a failure. Errors for
-- search crawlers are assigned to the domain. Browsers request a favicon with each page: if only that fails, no page is
-- broken.
CREATE VIEW path_requests AS
SELECT
    *, CASE audience WHEN 'search' THEN '/*' ELSE template_of(path, short_code) END AS template,
    name_of(agent, user_agent) AS name, is_in_last_days(day, 7) AS is_recent,
    CASE WHEN audience = 'search' THEN CASE WHEN status BETWEEN 500 AND 599 THEN 'search_errors' END
        WHEN is_asked_of_every_host(path) THEN NULL
        WHEN status BETWEEN 500 AND 599 THEN 'server_errors'
        WHEN is_not_found(status) AND audience = 'people' THEN 'dead_path' END AS kind
FROM (
    SELECT *, CASE WHEN is_person(bot_category) THEN 'people' WHEN is_ai(bot_category) THEN 'AI' ELSE 'search' END AS audience
    FROM detected_visits()
    WHERE path <> '' AND is_evidence(is_malicious, confidence, signals)
        AND (is_person(bot_category) OR is_ai(bot_category) OR bot_category = 'search_crawler')
);

-- The failures in path_requests, and missing paths for AI products or people whom they sent: one detector each.
CREATE VIEW failed_requests AS
SELECT
    kind, domain, template, short_code, path, name, agent, visitor, audience, referrer, confidence, day, visited_at
FROM path_requests WHERE kind IS NOT NULL
UNION ALL
SELECT
    'broken_link' AS kind, domain, path AS template, short_code, path, name_of(agent, user_agent) AS name, agent, visitor,
    CASE WHEN is_person(bot_category) THEN 'people' ELSE 'AI' END AS audience, referrer, confidence, day, visited_at
FROM detected_visits()
WHERE is_not_found(status) AND is_ai(bot_category) AND is_evidence(is_malicious, confidence, signals) AND path <> ''
    AND NOT is_asked_of_every_host(path);

-- The failures of a detector by subject.
CREATE VIEW failing_paths AS
SELECT
    kind, domain, template AS path, max(short_code) AS short_code, count(*) AS failures,
    total_if(1, audience = 'people') AS people, total_if(1, referrer IS NOT NULL) AS referred,
    count(DISTINCT visitor) AS visitors, top_of(of_name, name) AS top_agent, share(max(of_name), count(*)) AS top_share,
    total_if(1, confidence = 'verified') AS verified,
    CASE WHEN 2 * total_if(1, audience = 'people') >= count(*) THEN 'people' ELSE max(audience) FILTER (audience <> 'people')
        END AS audience,
    three_of(ranked(of_path, path)) AS top_paths, count(DISTINCT day) AS days, min(visited_at) AS first_seen,
    max(visited_at) AS last_seen, is_flood(count(*), of_name, agent, of_visitor, visitor) AS is_flood
FROM (
    SELECT
        *, count(*) OVER (PARTITION BY kind, domain, template, path) AS of_path,
        count(*) OVER (PARTITION BY kind, domain, template, name) AS of_name,
        count(*) OVER (PARTITION BY kind, domain, template, visitor) AS of_visitor
    FROM failed_requests
)
GROUP BY kind, domain, template;

-- The requests of vulnerability scanners, and, without a path, the answers to all visitors at the home page and at all
-- others. HEAD is left out: its answer has no size, so it does not show the content.
CREATE VIEW probed_paths AS
SELECT
    domain, path, is_home, name, visitor, day, total_if(1, is_malicious) AS probes,
    total_if(1, is_success(status)) AS answers, total_if(1, is_success(status) AND is_of_site) AS answers_to_site,
    max(bytes_sent) FILTER (is_success(status)) AS size, min(bytes_sent) FILTER (is_success(status)) AS least_size,
    min(visited_at) FILTER (is_success(status)) AS first_seen, max(visited_at) FILTER (is_success(status)) AS last_seen,
    max(visited_at) AS asked_at
FROM (
    SELECT
        domain, status, bytes_sent, visited_at, is_malicious, coalesce(referrer = domain, FALSE) AS is_of_site,
        NOT is_malicious AND path = '/' AS is_home, CASE WHEN is_malicious THEN plain_path(path) END AS path,
        CASE WHEN is_malicious THEN name_of(agent, user_agent) END AS name, CASE WHEN is_malicious THEN visitor END AS visitor,
        CASE WHEN is_malicious THEN day END AS day
    FROM detected_visits()
    WHERE path <> '' AND (is_malicious OR is_success(status)) AND coalesce(method <> 'HEAD', TRUE)
)
GROUP BY ALL;

-- Paths, with ids in them as *, on which people or AI products get 500 to 599, and whether often enough for a job.
CREATE VIEW erring_paths AS
SELECT
    errors.*, whole.visits, meets('fewer than 20 errors', errors.failures >= 20)
        AND meets('errors on one day only', errors.days >= 2)
        AND meets('errors for less than 5 % of the visits', 20 * errors.failures >= whole.visits)
        AND meets('errors for less than 5 % of the visits in the last 7 days', 20 * whole.recent_errors >= whole.recent_visits)
        AND meets('a flood by one browser or visitor', NOT errors.is_flood) AS is_erring
FROM shared('failing_paths') AS errors
JOIN (
    SELECT
        domain, template, count(*) AS visits, total_if(1, is_recent) AS recent_visits,
        total_if(1, is_recent AND kind = 'server_errors') AS recent_errors
    FROM path_requests WHERE audience <> 'search' GROUP BY domain, template
) AS whole ON whole.domain IS NOT DISTINCT FROM errors.domain AND whole.template = errors.path
WHERE errors.kind = 'server_errors';

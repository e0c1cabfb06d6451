-- What detectors of jobs and their measures share. Reads one more session variable, subjects: what jobs are about, by the
-- columns that name it, and a number for each. Measures join its view subject, which has no row while it is unset.

CREATE TYPE subjects AS STRUCT(
    number BIGINT, domain VARCHAR, path VARCHAR, short_code VARCHAR, agent VARCHAR, operator VARCHAR, ai_source VARCHAR
)[];

CREATE VIEW subject AS SELECT unnest(CAST(getvariable('subjects') AS subjects), recursive := TRUE);

CREATE MACRO is_in_last_days(day, days) AS day > CAST(getvariable('scope').end_date AS DATE) - days;

-- Answers that turn a visitor away. 404 and 410 do not: what he wants is not there for anybody.
CREATE MACRO is_refused(status) AS coalesce(status IN (401, 403, 405, 406, 429, 451), FALSE);
CREATE MACRO is_not_found(status) AS coalesce(status IN (404, 410), FALSE);

-- Files that programs ask every host for: no link is broken where one is missing.
CREATE MACRO is_asked_of_every_host(path) AS
    path IN ('/robots.txt', '/favicon.ico', '/sitemap.xml', '/llms.txt', '/ads.txt') OR path LIKE '/.well-known/%'
    OR path LIKE '/apple-touch-icon%';

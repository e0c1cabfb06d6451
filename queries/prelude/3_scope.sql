-- The only place where visits are filtered by the caller's scope. Reads the session variables scope (organization and days)
-- and files, links and link_changes (lists of Parquet files; each begins with an empty seed file). While scope is unset, no
-- visit is visible. Each filter is a separate variable with its name: unset filters are NULL and cost nothing, while a
-- field of a struct would be extracted again at each use.

CREATE TYPE scope AS STRUCT(organization VARCHAR, start_date DATE, end_date DATE);

CREATE VIEW scope AS SELECT unnest(CAST(getvariable('scope') AS scope)) WHERE getvariable('scope') IS NOT NULL;

-- Files of older schema versions lack columns, which become NULL. union_by_name, which reads the schema of every file,
-- is used only while such files are read.
-- Signals that are facts about a request are left out: of these, answers read is_signed only.
-- bot_category is the class of a visit by the signals of its day; landed_category is its class when it landed.
-- aside_bits is 0 for visits that are counted; is_file is the same whether files are counted or not.
CREATE MACRO read_visits_with_aside(visit_files) AS TABLE
SELECT * EXCLUDE (disguised, impostor) REPLACE (
    CASE WHEN disguised OR impostor THEN 'other_bot' ELSE bot_category END AS bot_category,
    CASE WHEN disguised AND is_prefetch(signals) THEN 'prefetch' WHEN disguised THEN 'disguised'
        WHEN impostor THEN 'other' ELSE agent_kind END AS agent_kind,
    CASE WHEN disguised OR impostor THEN NULL ELSE ai_source END AS ai_source,
    CASE WHEN disguised THEN NULL ELSE agent END AS agent,
    CASE WHEN disguised OR impostor THEN NULL ELSE operator END AS operator,
    CASE WHEN disguised THEN 'medium' WHEN impostor THEN 'contradicted' ELSE confidence END AS confidence,
    CASE WHEN disguised AND is_prefetch(signals) THEN 'header' WHEN disguised OR impostor THEN 'behaviour'
        ELSE detection_method END AS detection_method,
    CASE WHEN disguised THEN 'bot' ELSE device_type END AS device_type,
    signals & listed_signals() AS signals
), bot_category AS landed_category, aside_bits(signals) AS aside_bits,
    coalesce(signals, 0) & file_signal() <> 0 AS is_file,
    coalesce(signals, 0) & signed_signal() <> 0 AS is_signed
FROM (
    SELECT
        *, is_disguised(bot_category, signals) AS disguised,
        is_impostor(bot_category, agent, confidence, signals) AS impostor
    FROM read_parquet(
        visit_files['paths'], union_by_name = visit_files['schemas_differ'], hive_partitioning = TRUE,
        hive_types = {'organization': VARCHAR, 'day': DATE}
    )
    WHERE organization = getvariable('scope').organization
        AND day BETWEEN getvariable('scope').start_date AND getvariable('scope').end_date
);

-- The counted visits of some files.
CREATE MACRO read_visits(visit_files) AS TABLE
SELECT * EXCLUDE (aside_bits, is_file) FROM read_visits_with_aside(visit_files) WHERE is_counted(aside_bits);

-- Whether answers show a value as this word; without a word, every value matches. Both are named only once, since every
-- plan that reads visits contains a dozen of these.
CREATE MACRO matches(value, word) AS coalesce(coalesce(value, 'unknown') = word, TRUE);

-- Whether a link carries the tag in scope: the variable has words, described at TaggedLinks in data/links/index.py.
-- DuckDB looks them up in a hash table, and reads domains only if they matter.
CREATE MACRO tag_words() AS string_split(getvariable('tag'), ' ');

CREATE MACRO is_tagged(short_code, domain) AS
    getvariable('tag') IS NULL
    OR list_contains(tag_words(), short_code) AND (
        NOT contains(getvariable('tag'), '/')
        OR list_contains(tag_words(), coalesce(domain, '') || '/' || short_code)
        OR list_contains(tag_words(), '/' || short_code)
            AND NOT list_contains(tag_words(), '?' || coalesce(domain, '') || '/' || short_code)
    );

-- The visits of some files that pass all filters but the group, whether they pass the group, too, and whether they are
-- counted.
CREATE MACRO read_scope_of_every_group(visit_files) AS TABLE
FROM read_visits_with_aside(visit_files)
WHERE (getvariable('short_code') IS NULL OR short_code = getvariable('short_code'))
    AND (getvariable('domain') IS NULL OR domain = getvariable('domain'))
    AND (getvariable('no_domain') IS NULL OR domain IS NULL)
    AND is_tagged(short_code, domain)
    AND matches_traffic_type(bot_category, getvariable('traffic_type'))
    AND matches(country, getvariable('country'))
    AND matches(device_type, getvariable('device_type'))
    AND matches(browser, getvariable('browser'))
    AND matches(operating_system, getvariable('operating_system'))
    AND matches(coalesce(referrer, '(direct)'), getvariable('referrer'))
    AND matches(ai_source, getvariable('ai_source'))
    AND matches(agent, getvariable('agent'))
    AND matches(operator, getvariable('operator'))
    AND matches(path, getvariable('path'))
    AND matches(CAST(status AS VARCHAR), getvariable('status'))
    AND matches(utm_source, getvariable('utm_source'))
    AND matches(utm_campaign, getvariable('utm_campaign'));

CREATE MACRO read_scope_with_aside(visit_files) AS TABLE
FROM read_scope_of_every_group(visit_files) WHERE matches_traffic_group(bot_category, getvariable('traffic_group'));

CREATE MACRO read_visits_in_scope(visit_files) AS TABLE
SELECT * EXCLUDE (aside_bits, is_file) FROM read_scope_with_aside(visit_files) WHERE is_counted(aside_bits);

-- The visits of some files that pass all filters: counted visits (is_counted), and answered visits that are set aside or
-- of other groups, which show that a short code is a link.
CREATE MACRO read_scope_for_links(visit_files) AS TABLE
FROM (
    SELECT
        * EXCLUDE (aside_bits, is_file),
        is_counted(aside_bits) AND matches_traffic_group(bot_category, getvariable('traffic_group')) AS is_counted
    FROM read_scope_of_every_group(visit_files)
)
WHERE is_counted OR short_code IS NOT NULL AND is_answered(status);

-- Whether a filter by a word is set: it selects visits, but does not change which short codes are links.
CREATE MACRO has_word() AS coalesce(
    getvariable('country'), getvariable('device_type'), getvariable('browser'), getvariable('operating_system'),
    getvariable('referrer'), getvariable('ai_source'), getvariable('agent'), getvariable('operator'),
    getvariable('path'), getvariable('status'), getvariable('utm_source'), getvariable('utm_campaign')) IS NOT NULL;

-- AI referrals are people, not bots; bot-traffic lists them only when the caller filters by traffic_type.
CREATE MACRO is_listed_bot(bot_category) AS
    NOT is_referral(bot_category) OR getvariable('traffic_type') IS NOT NULL;

CREATE VIEW visits_in_days AS FROM read_visits(getvariable('files'));

CREATE VIEW visits_in_scope AS FROM read_visits_in_scope(getvariable('files'));

-- Detectors read all visits in scope, so that findings do not depend on what is counted.
CREATE VIEW visits_with_aside AS
SELECT * EXCLUDE (aside_bits), reason_aside(aside_bits) AS aside FROM read_scope_with_aside(getvariable('files'));

-- The file of changes has the links that were changed or removed since the complete file of links was written.
CREATE VIEW links_in_scope AS
SELECT whole.* FROM read_parquet(getvariable('links'), union_by_name = TRUE, hive_partitioning = FALSE) AS whole
ANTI JOIN read_parquet(getvariable('link_changes'), union_by_name = TRUE, hive_partitioning = FALSE) AS changes
    ON changes.short_code = whole.short_code AND changes.domain = whole.domain
WHERE whole.organization = getvariable('scope').organization
UNION ALL
SELECT * EXCLUDE (removed)
FROM read_parquet(getvariable('link_changes'), union_by_name = TRUE, hive_partitioning = FALSE)
WHERE organization = getvariable('scope').organization AND NOT removed;

-- Whether a short code on a domain is a link: it is in the links file, or at least one visit to it in the days of the scope
-- was answered (is_answered), of any visitor, counted or set aside.
CREATE MACRO is_link(short_code, domain, is_answered) AS
    short_code IS NOT NULL AND (
        is_answered
        OR short_code IN (SELECT links.short_code FROM links_in_scope AS links WHERE links.domain = '')
        OR (short_code, domain) IN (SELECT (links.short_code, links.domain) FROM links_in_scope AS links)
    );

CREATE VIEW traffic_values AS SELECT unnest(getvariable('traffic_values'), recursive := TRUE);

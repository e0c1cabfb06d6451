-- The visits in some rows of one file, with the kind of their path: probe, program or ''. No short code in link_codes
-- is a probe.
-- is_internal: the referrer is the visit's own domain or one of link_domains, or was when the visit landed.
-- Visits with the same `request` number are the same input to the classifier.
-- The stored classification is part of the input, since it may depend on values that are not stored.
-- Parameters: files, first_row, end_row (not included; rows count from 0), probe_pattern, program_pattern.
CREATE OR REPLACE TEMP TABLE stored_visits AS
WITH visits_of_kinds AS (
    SELECT
        *,
        CASE WHEN regexp_matches(path, $probe_pattern)
                AND coalesce(short_code NOT IN (SELECT short_code FROM link_codes), TRUE) THEN 'probe'
            WHEN regexp_matches(path, $program_pattern) THEN 'program' ELSE '' END AS path_kind,
        referrer IS NOT NULL AND (
            referrer_type = 'internal'
            OR regexp_replace(referrer, '^www[.]', '') = regexp_replace(coalesce(domain, ''), '^www[.]', '')
            OR regexp_replace(referrer, '^www[.]', '') IN (
                SELECT regexp_replace(link_domains.domain, '^www[.]', '') FROM link_domains)
        ) AS is_internal
    FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE)
    WHERE file_row_number >= $first_row AND file_row_number < $end_row
)
SELECT
    *,
    dense_rank() OVER (ORDER BY
        user_agent, method, referrer, referrer_type, utm_source, bot_category, agent_kind, ai_source, agent, operator,
        confidence, detection_method, path_kind
    ) AS request
FROM visits_of_kinds

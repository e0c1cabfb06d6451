-- The visits in some rows of one file, with the kind of their path: probe, program or ''. A short code in link_codes is
-- never a probe.
-- is_internal: the referrer is the visit's own domain or one of link_domains, now or when the visit landed.
-- new_signals: includes the reason why a visit is set aside by the current rules.
-- Visits with the same `request` number are the same input for the classifier.
-- The stored classification is part of the input, since it may depend on values that are not stored.
-- Parameters: files, first_row, end_row (excluded; rows count from 0), probe_pattern, program_pattern,
-- file_pattern, own_agents and own_paths (patterns; NULL: none), upgraded (a status), bits (the bit of each signal, by
-- name).
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
    nullif(
        coalesce(signals, 0) & ~($bits.file | $bits.own_rule)
        | CASE WHEN path_kind <> 'probe' AND (
                coalesce(signals, 0) & $bits.page_part <> 0 OR coalesce(status = $upgraded, FALSE)
                OR coalesce(signals & ($bits.accepts_no_page | $bits.file) = $bits.accepts_no_page | $bits.file, FALSE)
                OR short_code IS NULL AND contains(path, '.') AND regexp_matches(path, $file_pattern)
            ) THEN $bits.file ELSE 0 END
        | CASE WHEN regexp_matches(path, $own_paths) OR regexp_matches(coalesce(user_agent, ''), $own_agents)
            THEN $bits.own_rule ELSE 0 END,
        CASE WHEN signals IS NULL THEN 0 END
    ) AS new_signals,
    dense_rank() OVER (ORDER BY
        user_agent, method, referrer, referrer_type, utm_source, bot_category, agent_kind, ai_source, agent, operator,
        confidence, detection_method, path_kind
    ) AS request
FROM visits_of_kinds

-- Path, query, short code, is_probe, is_program and signals (attacked: its query is an attack) of each distinct target.
-- The path is '' for a target that is not a path or URL.
-- `short_code_rank` is the sort order of the short codes. Parameters: short_code_pattern, probe_pattern,
-- program_pattern, attack_pattern, attacked (its bit).
WITH relative AS (
    SELECT
        number,
        CASE WHEN starts_with(target, 'http') THEN regexp_replace(target, '^https?://[^/?]*', '')
            ELSE target END AS target
    FROM targets
), parted AS (
    SELECT
        number,
        CASE WHEN starts_with(target, '/') THEN split_part(target, '?', 1) ELSE '' END AS path,
        CASE WHEN contains(target, '?') AND (contains(target, 'utm_') OR contains(target, 'referrer='))
            THEN substr(target, instr(target, '?') + 1) ELSE '' END AS query,
        CASE WHEN contains(target, '?') AND regexp_matches(substr(target, instr(target, '?') + 1), $attack_pattern)
            THEN CAST($attacked AS BIGINT) END AS signals
    FROM relative
), matched AS (
    SELECT
        *,
        nullif(regexp_extract(path, $short_code_pattern, 1), '') AS short_code,
        regexp_matches(path, $probe_pattern) AS is_probe,
        regexp_matches(path, $program_pattern) AS is_program
    FROM parted
)
SELECT
    path, query, short_code, is_probe, is_program, signals, dense_rank() OVER (ORDER BY short_code) AS short_code_rank
FROM matched ORDER BY number

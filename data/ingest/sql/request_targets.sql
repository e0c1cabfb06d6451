-- Path, query, short code, is_probe, is_program and signals of each distinct target: `attacked` if its query is an
-- attack, `file` by its path, `own_rule` if its path is excluded. A target other than a path or URL has the path ''.
-- `short_code_rank` is the sort order of the short codes. Parameters: short_code_pattern, probe_pattern,
-- program_pattern, attack_pattern, file_pattern, own_path_pattern (NULL: none), bits (the bit of each signal, by name).
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
        contains(target, '?') AND regexp_matches(substr(target, instr(target, '?') + 1), $attack_pattern) AS is_attack
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
    path, query, short_code, is_probe, is_program, dense_rank() OVER (ORDER BY short_code) AS short_code_rank,
    CAST(
        CASE WHEN is_attack THEN $bits.attacked ELSE 0 END
        | CASE WHEN short_code IS NULL AND NOT is_probe AND contains(path, '.') AND regexp_matches(path, $file_pattern)
            THEN $bits.file ELSE 0 END
        | CASE WHEN regexp_matches(path, $own_path_pattern) THEN $bits.own_rule ELSE 0 END
    AS BIGINT) AS signals
FROM matched ORDER BY number

-- The distinct user agents of one day's people, each with its hash, of one of several parts of them.
-- Parameters: files, parts, part (from 0). The cast keeps the remainder from being counted in 128 bits, which takes ten
-- times as long.
SELECT DISTINCT hash(user_agent) AS agent, user_agent
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE bot_category IN ('human', 'ai_referral') AND user_agent IS NOT NULL AND hash(user_agent) % $parts::UBIGINT = $part

-- The distinct user agents of people in one of several parts, each with its hash.
-- Parameters: files, parts, part (from 0). Without the cast, the remainder is computed with 128 bits, which takes ten
-- times as long.
SELECT DISTINCT hash(user_agent) AS agent, user_agent
FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
WHERE bot_category IN ('human', 'ai_referral') AND user_agent IS NOT NULL AND hash(user_agent) % $parts::UBIGINT = $part

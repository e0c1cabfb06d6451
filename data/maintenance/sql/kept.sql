-- The visits of one file in their order, and which of them ask the classifier the same question.
-- The question holds what was answered before, as an answer may rest on what was not kept. Parameter: files.
CREATE OR REPLACE TEMP TABLE kept AS
SELECT
    *,
    dense_rank() OVER (ORDER BY
        user_agent, method, referrer, referrer_type, utm_source, bot_category, agent_kind, ai_source, agent, operator,
        confidence, detection_method
    ) AS request
FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE)

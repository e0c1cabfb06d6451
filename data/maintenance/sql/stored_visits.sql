-- The visits of one file; those with the same `request` number are the same input to the classifier.
-- The stored classification is part of the input, as it may rest on facts that are not stored. Parameter: files.
CREATE OR REPLACE TEMP TABLE stored_visits AS
SELECT
    *,
    dense_rank() OVER (ORDER BY
        user_agent, method, referrer, referrer_type, utm_source, bot_category, agent_kind, ai_source, agent, operator,
        confidence, detection_method
    ) AS request
FROM read_parquet($files, file_row_number := TRUE, hive_partitioning := FALSE, union_by_name := TRUE)

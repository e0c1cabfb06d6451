-- The visits in scope that landed as human, by day and signals, and whether the signals convict them.
SELECT day, coalesce(signals, 0) AS signals, convicts(signals) AS is_convicted, count(*) AS visits
FROM visits_in_scope WHERE is_person(landed_category)
GROUP BY ALL ORDER BY ALL

-- The visits in scope that landed as people's, by day and signals, and whether these convict them.
SELECT day, coalesce(signals, 0) AS signals, convicts(signals) AS is_convicted, count(*) AS visits
FROM visits_in_scope WHERE is_person(landed_category)
GROUP BY ALL ORDER BY ALL

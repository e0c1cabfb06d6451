-- The visits in scope that landed as people's, by day and signals, and whether these make them bots in disguise.
SELECT day, coalesce(signals, 0) AS signals, weight_of(coalesce(signals, 0)) >= 2 AS is_enough, count(*) AS visits
FROM visits_in_scope WHERE is_person(landed_category)
GROUP BY ALL ORDER BY ALL

-- The visits in scope that landed as people's, by their signals and by whether these make them bots in disguise.
-- NULL: their days are not judged yet.
SELECT signals, weight_of(signals) >= 2 AS is_enough, count(*) AS visits
FROM visits_in_scope WHERE is_person(landed_category)
GROUP BY signals ORDER BY signals

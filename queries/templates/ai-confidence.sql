-- AI-related requests by confidence of their classification and detection method.
SELECT
    coalesce(confidence, 'unknown') AS confidence,
    coalesce(detection_method, 'unknown') AS detection_method,
    score_of(confidence) AS score,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage
FROM daily_confidence
GROUP BY confidence, detection_method
ORDER BY visits DESC, confidence, detection_method;

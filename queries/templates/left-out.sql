-- Stored requests on every day of the range, the files among them, and requests that are not counted as people's for
-- another reason: the owner's visits, which are not counted, and bots recognized by more than their names (disguised,
-- loaded ahead and not opened, probes, without a user agent).
SELECT
    days_in_scope.day AS date,
    total(visits) AS stored,
    total_if(visits, is_file) AS files,
    total_if(visits, reason = 'own') AS own,
    total_if(visits, reason = 'disguised') AS disguised,
    total_if(visits, reason = 'loaded_ahead') AS loaded_ahead,
    total_if(visits, reason = 'probe') AS probes,
    total_if(visits, reason = 'no_agent') AS no_agent
FROM days_in_scope LEFT JOIN (
    SELECT
        day, is_file, reason_left_out(aside, bot_category, agent_kind, is_malicious, user_agent) AS reason,
        count(*) AS visits
    FROM visits_with_aside GROUP BY ALL
) AS daily ON daily.day = days_in_scope.day
GROUP BY days_in_scope.day
ORDER BY date;

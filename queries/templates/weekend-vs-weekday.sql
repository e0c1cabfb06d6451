-- Requests on weekdays and at weekends. Compare the averages per day.
WITH periods AS (
    SELECT periods.period, count(day) AS days
    FROM (VALUES ('weekday'), ('weekend')) AS periods(period) LEFT JOIN days_in_scope ON period_of(day) = periods.period
    GROUP BY periods.period
)
SELECT
    period,
    days,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    rate(total(visits), days) AS avg_visits,
    total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits,
    total_if(visits, is_other(bot_category)) AS other_visits
FROM periods LEFT JOIN daily_categories ON period_of(day) = period
GROUP BY period, days
ORDER BY period;

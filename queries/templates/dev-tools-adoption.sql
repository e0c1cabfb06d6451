-- Requests by coding agents per week and tool, with the first week of each tool and the change from the week before.
WITH weeks AS (
    SELECT
        week_of(day) AS week,
        coalesce(tool, 'unknown') AS tool,
        total(visits) AS visits,
        total(unique_visitors) AS unique_visitors,
        count(DISTINCT day) AS active_days
    FROM daily_tools GROUP BY week_of(day), coalesce(tool, 'unknown')
)
SELECT
    weeks.week,
    weeks.tool,
    weeks.visits,
    weeks.unique_visitors,
    weeks.active_days,
    weeks.week = min(weeks.week) OVER (PARTITION BY weeks.tool) AS is_new,
    change(weeks.visits, before.visits) AS change_percentage
FROM weeks LEFT JOIN weeks AS before
    ON before.tool = weeks.tool AND before.week = CAST(weeks.week - INTERVAL 7 DAY AS DATE)
ORDER BY week, visits DESC, tool;

-- The visits that daily_agents counts: on days of high cardinality, the agents with the most visits are kept.
CREATE VIEW visits_with_cut_agents AS
WITH kept_agents AS (
    SELECT day, agent FROM read_visits(getvariable('uncovered_files'))
    WHERE has_high_cardinality(day, getvariable('agent')) AND agent IS NOT NULL AND NOT is_human(bot_category)
    GROUP BY day, agent
    QUALIFY row_number() OVER (PARTITION BY day ORDER BY count(*) DESC, agent) <= max_values_per_day()
    UNION ALL
    SELECT DISTINCT day, agent FROM stored_rows('daily_agents') WHERE for_domain IS NULL
)
SELECT visits.* REPLACE (
    or_other(agent, agent IS NOT NULL AND has_high_cardinality(day, getvariable('agent')) AND kept.day IS NULL) AS agent
)
FROM visits_to_count('daily_agents') AS visits LEFT JOIN kept_agents AS kept USING (day, agent);

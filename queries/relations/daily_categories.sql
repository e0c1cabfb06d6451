-- Daily visits by category, purpose of AI agents, AI source and device type.
-- Serves: traffic_type, ai_source, device_type
CREATE VIEW daily_categories_counted AS
SELECT
    for_domain, day, bot_category, purpose(bot_category, agent_kind) AS purpose, ai_source, device_type,
    count(*) AS visits
FROM visits_to_count('daily_categories') GROUP BY ALL;

CREATE VIEW daily_categories_stored AS
SELECT for_domain, day, bot_category, purpose, ai_source, device_type, visits
FROM rollup_rows('daily_categories')
WHERE matches(ai_source, getvariable('ai_source')) AND matches(device_type, getvariable('device_type'));

CREATE VIEW daily_categories AS FROM query_table(parts_of('daily_categories'), TRUE);

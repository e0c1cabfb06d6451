-- Daily visits and visitors by AI platform; assistants only, without vulnerability probes.
-- Serves: ai_source
CREATE VIEW daily_assistants_counted AS
SELECT for_domain, day, ai_source, total(visits) AS visits, total(asked) AS asked, count(visitor) AS unique_visitors
FROM (
    SELECT
        for_domain, day, ai_source, visitor, count(*) AS visits,
        count(*) FILTER (purpose(bot_category, agent_kind) = 'asked') AS asked
    FROM visits_to_count('daily_assistants') WHERE bot_category = 'ai_assistant' AND NOT is_malicious GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_assistants_stored AS
SELECT for_domain, day, ai_source, visits, asked, unique_visitors
FROM rollup_rows('daily_assistants') WHERE has_group('ai') AND matches(ai_source, getvariable('ai_source'));

CREATE VIEW daily_assistants AS FROM query_table(parts_of('daily_assistants'), TRUE);

-- Visits and visitors of each day by AI platform: assistants only, without probes for weaknesses.
CREATE VIEW daily_assistants AS
SELECT
    day,
    ai_source,
    total(visits) AS visits,
    count(visitor) AS unique_visitors
FROM (
    SELECT
        day,
        ai_source,
        visitor,
        count(*) AS visits
    FROM visits_in_scope
    WHERE bot_category = 'ai_assistant' AND NOT is_malicious
    GROUP BY day, ai_source, visitor
)
GROUP BY day, ai_source;

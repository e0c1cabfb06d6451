-- The AI-related visits in scope that got 404 or 410, at addresses that are not links and that got no answer below 400
-- in the days of the scope.
CREATE VIEW ai_missed_visits AS
WITH missed AS (
    SELECT domain, path, short_code, ai_source, bot_category, agent_kind, visitor, visited_at
    FROM visits_in_scope
    WHERE is_not_found(status) AND is_ai(bot_category) AND NOT is_malicious AND path NOT IN ('', '/')
        AND NOT is_asked_of_every_host(path)
), answered AS (
    SELECT DISTINCT domain, path FROM read_visits_with_aside(getvariable('files'))
    WHERE is_answered(status) AND path IN (SELECT path FROM missed)
)
SELECT missed.*
FROM missed
ANTI JOIN answered ON answered.path = missed.path AND answered.domain IS NOT DISTINCT FROM missed.domain
ANTI JOIN links_in_scope AS links
    ON links.short_code = missed.short_code AND links.domain IN ('', coalesce(missed.domain, ''));

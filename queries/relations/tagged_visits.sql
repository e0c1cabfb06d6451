-- Visits by day and visitor to links with a tag; a visit to a link with two tags counts under both. The link is the one
-- for the visit's domain, otherwise the one for any domain. Counted from visits.
CREATE VIEW tagged_visits AS
WITH known AS (
    SELECT short_code, domain, tags FROM links_in_scope
    WHERE short_code IN (SELECT tagged.short_code FROM links_in_scope AS tagged WHERE tagged.tags IS NOT NULL)
), asked AS (
    SELECT short_code, domain, day, visitor, bot_category, count(*) AS visits, max(visited_at) AS last_visit
    FROM visits_in_scope
    WHERE short_code IN (SELECT known.short_code FROM known)
    GROUP BY short_code, domain, day, visitor, bot_category
), linked AS (
    SELECT asked.*, CASE WHEN own.short_code IS NULL THEN anywhere.tags ELSE own.tags END AS tags
    FROM asked
    LEFT JOIN known AS own ON own.short_code = asked.short_code AND own.domain = asked.domain
    LEFT JOIN known AS anywhere ON anywhere.short_code = asked.short_code AND anywhere.domain = ''
), carried AS (
    SELECT day, visitor, bot_category, visits, last_visit, unnest(tags) AS tag FROM linked WHERE tags IS NOT NULL
)
SELECT
    tag, day, visitor, total(visits) AS visits, total_if(visits, is_human(bot_category)) AS human_clicks,
    total_if(visits, is_ai(bot_category)) AS ai_visits, total_if(visits, is_referral(bot_category)) AS ai_referrals,
    total_if(visits, is_other(bot_category)) AS other_visits, max(last_visit) AS last_visit
FROM carried GROUP BY tag, day, visitor;

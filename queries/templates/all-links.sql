-- Every link, with or without visits on the days in scope, 100 at a time unless more are requested: by default the
-- links with the most requests.
-- links_found counts all links.
WITH listed AS (
    SELECT
        *, count(*) OVER () AS links_found,
        CASE sorted_by() WHEN 'visits' THEN visits
            WHEN 'human_clicks' THEN human_clicks WHEN 'ai_visits' THEN ai_visits
            WHEN 'other_visits' THEN other_visits WHEN 'unique_visitors' THEN unique_visitors
            WHEN 'people_visitors' THEN people_visitors END AS number,
        CASE sorted_by() WHEN 'short_code' THEN short_code WHEN 'domain' THEN domain
            WHEN 'target_url' THEN target_url WHEN 'created_at' THEN CAST(created_at AS VARCHAR)
            WHEN 'last_visit' THEN CAST(last_visit AS VARCHAR) END AS word
    FROM listed_links
    WHERE is_listed(short_code || ' ' || domain || ' ' || target_url || ' ' || array_to_string(tags, ' '), visits)
)
SELECT * EXCLUDE (number, word)
FROM listed
ORDER BY
    CASE WHEN is_ascending() THEN number ELSE 0 - number END,
    CASE WHEN is_ascending() THEN word END, word DESC,
    short_code, domain
LIMIT shown() OFFSET skipped();

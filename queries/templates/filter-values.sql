-- Values to filter by that occur in the days in scope, at most 1,000 for each filter. Other filters are ignored.
WITH here AS (
    SELECT domain, short_code FROM filterable_values GROUP BY domain, short_code
), kinds AS (
    SELECT bot_category, ai_source FROM filterable_values GROUP BY bot_category, ai_source
), seen AS (
    SELECT 'domain' AS filter, domain AS value FROM here
    UNION SELECT 'short_code', short_code FROM here
    UNION SELECT 'traffic_type', bot_category FROM kinds
    UNION SELECT 'ai_source', ai_source FROM kinds
    UNION SELECT 'target_url', target_url
    FROM links_in_scope JOIN here USING (short_code) WHERE links_in_scope.domain IN ('', here.domain)
), numbered AS (
    SELECT filter, value, row_number() OVER (PARTITION BY filter ORDER BY value) AS position
    FROM seen WHERE value IS NOT NULL
), filters AS (
    SELECT * FROM (VALUES
        (1, 'domain'), (2, 'short_code'), (3, 'target_url'), (4, 'traffic_type'), (5, 'ai_source'), (6, 'range')
    ) AS filters(place, filter)
)
SELECT
    filters.filter,
    CASE WHEN filters.filter = 'range' THEN ['7d', '30d', '90d']
        ELSE coalesce(list(value ORDER BY value) FILTER (position <= 1000), []) END AS "values",
    count(value) > 1000 AS truncated
FROM filters LEFT JOIN numbered ON numbered.filter = filters.filter
GROUP BY filters.place, filters.filter
ORDER BY filters.place;

-- Values to filter by that occur on the days in scope: for each filter the 1,000 with the most visits, in alphabetical
-- order. Other filters are ignored.
WITH here AS (
    SELECT short_code, domain, total(visits) AS visits, bool_or(is_answered) AS is_answered
    FROM filterable_values GROUP BY short_code, domain
), requested AS MATERIALIZED (
    SELECT short_code, domain, target_url FROM links_in_scope WHERE short_code IN (SELECT short_code FROM here)
), targets AS (
    SELECT DISTINCT target_url, here.* FROM requested JOIN here USING (short_code) WHERE requested.domain IN ('', here.domain)
), seen AS (
    SELECT 'domain' AS filter, domain AS value, visits FROM here
    UNION ALL SELECT 'short_code', short_code, visits FROM here WHERE is_answered
    UNION ALL SELECT 'short_code', short_code, visits
    FROM (SELECT DISTINCT short_code, domain, visits FROM targets WHERE NOT is_answered)
    UNION ALL SELECT 'target_url', target_url, visits FROM targets
    UNION ALL SELECT 'traffic_type', bot_category, visits FROM filterable_values
    UNION ALL SELECT 'ai_source', ai_source, visits FROM filterable_values
), numbered AS (
    SELECT filter, value, row_number() OVER (PARTITION BY filter ORDER BY total(visits) DESC, value) AS position
    FROM seen WHERE value IS NOT NULL AND visits > 0 GROUP BY filter, value
), filters AS (
    SELECT * FROM (VALUES (1, 'domain'), (2, 'short_code'), (3, 'target_url'), (4, 'traffic_type'), (5, 'ai_source'),
        (6, 'range')) AS filters(place, filter)
)
SELECT filters.filter,
    CASE WHEN filters.filter = 'range' THEN ['7d', '30d', '90d']
        ELSE coalesce(list(value ORDER BY value) FILTER (position <= 1000), []) END AS "values",
    count(value) > 1000 AS truncated
FROM filters LEFT JOIN numbered ON numbered.filter = filters.filter
GROUP BY filters.place, filters.filter ORDER BY filters.place;

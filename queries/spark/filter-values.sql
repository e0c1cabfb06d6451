-- Compiled from queries/templates/filter-values.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), filterable_values AS (
    SELECT
        domain,
        short_code,
        bot_category,
        ai_source,
        COUNT(*) AS visits,
        BOOL_OR(COALESCE(status < 400, TRUE)) AS is_answered
    FROM visits_in_days
    GROUP BY
        domain,
        short_code,
        bot_category,
        ai_source
), links_in_scope AS (
    SELECT
        *
    FROM links
    WHERE
        organization = CAST(:organization AS STRING)
), here AS (
    SELECT
        short_code,
        domain,
        COALESCE(CAST(SUM(visits) AS BIGINT), 0) AS visits,
        BOOL_OR(is_answered) AS is_answered
    FROM filterable_values
    GROUP BY
        short_code,
        domain
), targets AS (
    SELECT DISTINCT
        target_url,
        here.short_code,
        here.domain,
        here.visits,
        here.is_answered
    FROM links_in_scope
    JOIN here
        ON links_in_scope.short_code = here.short_code
    WHERE
        links_in_scope.domain IN ('', here.domain)
), seen AS (
    SELECT
        'domain' AS filter,
        domain AS value,
        visits
    FROM here
    UNION ALL
    SELECT
        'short_code',
        short_code,
        visits
    FROM here
    WHERE
        NOT short_code IS NULL
        AND (
            is_answered
            OR short_code IN (
                SELECT
                    links.short_code
                FROM links_in_scope AS links
                WHERE
                    links.domain = ''
            )
            OR (short_code, domain) IN (
                SELECT
                    links.short_code,
                    links.domain
                FROM links_in_scope AS links
            )
        )
    UNION ALL
    SELECT
        'target_url',
        target_url,
        visits
    FROM targets
    UNION ALL
    SELECT
        'traffic_type',
        bot_category,
        visits
    FROM filterable_values
    UNION ALL
    SELECT
        'ai_source',
        ai_source,
        visits
    FROM filterable_values
), numbered AS (
    SELECT
        filter,
        value,
        CAST(ROW_NUMBER() OVER (PARTITION BY filter ORDER BY COALESCE(CAST(SUM(visits) AS BIGINT), 0) DESC, value NULLS LAST) AS BIGINT) AS position
    FROM seen
    WHERE
        NOT value IS NULL
    GROUP BY
        filter,
        value
), filters AS (
    SELECT
        *
    FROM VALUES
        (1, 'domain'),
        (2, 'short_code'),
        (3, 'target_url'),
        (4, 'traffic_type'),
        (5, 'ai_source'),
        (6, 'range') AS filters(place, filter)
)
SELECT
    filters.filter,
    CASE
        WHEN filters.filter = 'range'
        THEN ARRAY('7d', '30d', '90d')
        ELSE COALESCE(ARRAY_SORT(COLLECT_LIST(value) FILTER(WHERE
            position <= 1000)), ARRAY())
    END AS `values`,
    COUNT(value) > 1000 AS truncated
FROM filters
LEFT JOIN numbered
    ON numbered.filter = filters.filter
GROUP BY
    filters.place,
    filters.filter
ORDER BY
    filters.place NULLS LAST;

-- The visits that daily_domains counts: on days of high cardinality, the domains with the most visits are kept.
CREATE VIEW visits_with_cut_domains AS
WITH kept_domains AS (
    SELECT day, domain FROM read_visits(getvariable('uncovered_files'))
    WHERE has_high_cardinality(day, getvariable('domain')) AND domain IS NOT NULL
    GROUP BY day, domain
    QUALIFY row_number() OVER (PARTITION BY day ORDER BY count(*) DESC, domain) <= max_values_per_day()
    UNION ALL
    SELECT DISTINCT day, domain FROM stored_rows('daily_domains') WHERE for_domain IS NULL
)
SELECT visits.* REPLACE (
    or_other(domain, domain IS NOT NULL AND has_high_cardinality(day, getvariable('domain')) AND kept.day IS NULL)
        AS domain
)
FROM visits_to_count('daily_domains') AS visits LEFT JOIN kept_domains AS kept USING (day, domain);

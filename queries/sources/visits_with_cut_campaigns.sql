-- The visits that daily_campaigns counts: on days of high cardinality, the campaigns with the most visits are kept.
CREATE VIEW visits_with_cut_campaigns AS
WITH kept_campaigns AS (
    SELECT day, (utm_source, utm_medium, utm_campaign) AS campaign FROM read_visits(getvariable('uncovered_files'))
    WHERE has_high_cardinality(day, coalesce(getvariable('utm_source'), getvariable('utm_campaign')))
        AND coalesce(utm_source, utm_medium, utm_campaign) IS NOT NULL
    GROUP BY day, utm_source, utm_medium, utm_campaign
    QUALIFY row_number() OVER (PARTITION BY day ORDER BY count(*) DESC, utm_source, utm_medium, utm_campaign)
        <= max_values_per_day()
    UNION ALL
    SELECT DISTINCT day, (utm_source, utm_medium, utm_campaign) FROM stored_rows('daily_campaigns')
    WHERE for_domain IS NULL
), marked AS (
    SELECT
        visits.*,
        coalesce(utm_source, utm_medium, utm_campaign) IS NOT NULL
            AND has_high_cardinality(visits.day, coalesce(getvariable('utm_source'), getvariable('utm_campaign')))
            AND kept.day IS NULL AS is_cut
    FROM visits_to_count('daily_campaigns') AS visits
    LEFT JOIN kept_campaigns AS kept ON kept.day = visits.day AND kept.campaign = (utm_source, utm_medium, utm_campaign)
)
SELECT * REPLACE (
    or_other(utm_source, is_cut) AS utm_source, or_other(utm_medium, is_cut) AS utm_medium,
    or_other(utm_campaign, is_cut) AS utm_campaign
)
FROM marked;

-- The visits that daily_referrers counts: on days of high cardinality, the referrers with the most visits are kept.
CREATE VIEW visits_with_cut_referrers AS
WITH kept_referrers AS (
    SELECT day, referrer FROM read_visits(getvariable('uncovered_files'))
    WHERE has_high_cardinality(day, getvariable('referrer')) AND referrer IS NOT NULL AND is_person(bot_category)
    GROUP BY day, referrer
    QUALIFY row_number() OVER (PARTITION BY day ORDER BY count(*) DESC, referrer) <= max_values_per_day()
    UNION ALL
    SELECT DISTINCT day, referrer FROM stored_rows('daily_referrers') WHERE for_domain IS NULL
)
SELECT visits.* REPLACE (
    or_other(referrer, referrer IS NOT NULL AND has_high_cardinality(day, getvariable('referrer')) AND kept.day IS NULL)
        AS referrer
)
FROM visits_to_count('daily_referrers') AS visits LEFT JOIN kept_referrers AS kept USING (day, referrer);

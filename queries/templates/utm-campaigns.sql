-- Requests with at least one utm parameter, by campaign. At most 1,000 rows: beyond that, the last one is (other).
WITH campaigns AS (
    SELECT
        coalesce(utm_source, 'unknown') AS utm_source, coalesce(utm_medium, 'unknown') AS utm_medium,
        coalesce(utm_campaign, 'unknown') AS utm_campaign,
        (utm_source, utm_medium, utm_campaign) IS NOT DISTINCT FROM ('(other)', '(other)', '(other)') AS is_cut,
        total(visits) AS visits, total(human_clicks) AS human_clicks, total(ai_visits) AS ai_visits,
        total(unique_visitors) AS unique_visitors
    FROM daily_campaigns GROUP BY ALL
), listed AS (
    SELECT *, is_rest(
        is_cut, row_number() OVER (ORDER BY is_cut, visits DESC, utm_source, utm_medium, utm_campaign), 1) AS is_rest
    FROM campaigns
)
SELECT
    or_other(utm_source, is_rest) AS utm_source,
    or_other(utm_medium, is_rest) AS utm_medium,
    or_other(utm_campaign, is_rest) AS utm_campaign,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(unique_visitors) AS unique_visitors
FROM listed
GROUP BY is_rest, 1, 2, 3
ORDER BY is_rest, visits DESC, utm_source, utm_medium, utm_campaign;

-- Requests with at least one utm parameter, by campaign.
SELECT
    coalesce(utm_source, 'unknown') AS utm_source,
    coalesce(utm_medium, 'unknown') AS utm_medium,
    coalesce(utm_campaign, 'unknown') AS utm_campaign,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(unique_visitors) AS unique_visitors
FROM daily_campaigns
GROUP BY coalesce(utm_source, 'unknown'), coalesce(utm_medium, 'unknown'), coalesce(utm_campaign, 'unknown')
ORDER BY visits DESC, utm_source, utm_medium, utm_campaign;

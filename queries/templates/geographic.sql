-- Requests by country; unknown if neither the log nor the IP address gave one.
SELECT
    coalesce(country, 'unknown') AS country,
    coalesce(max(country_name), 'unknown') AS country_name,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits,
    total(unique_visitors) AS unique_visitors
FROM daily_countries LEFT JOIN countries USING (country)
GROUP BY coalesce(country, 'unknown')
ORDER BY visits DESC, country;

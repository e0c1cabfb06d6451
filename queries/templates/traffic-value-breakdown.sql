-- Estimated value of requests by category, with the values of traffic_values.toml (as shipped: 0).
WITH types AS (
    SELECT bot_category AS traffic_type, total(visits) AS visits FROM daily_categories GROUP BY bot_category
), worth AS (
    SELECT types.*, ten_thousandths, currency, visits * CAST(ten_thousandths AS HUGEINT) AS amount
    FROM types JOIN traffic_values USING (traffic_type)
)
SELECT
    traffic_type,
    visits,
    share(visits, sum(visits) OVER ()) AS percentage,
    ten_thousandths / 10000 AS value_per_visit,
    rate(amount, 10000) AS estimated_value,
    share(amount, sum(amount) OVER ()) AS value_percentage,
    currency
FROM worth
ORDER BY visits DESC, traffic_type;

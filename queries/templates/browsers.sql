-- Requests by people, including AI referrals, by browser.
SELECT
    coalesce(browser, 'unknown') AS browser,
    total(visits) AS visits,
    share(total(visits), sum(total(visits)) OVER ()) AS percentage,
    total(human_clicks) AS human_clicks,
    total(unique_visitors) AS unique_visitors
FROM daily_browsers
GROUP BY coalesce(browser, 'unknown')
ORDER BY visits DESC, browser;

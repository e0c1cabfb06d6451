-- Bots in disguise: visits with a browser's name that count as other automated, not as people, by what their day shows.
-- In total, then with each signal, of which a visit may have several, and with it alone. No row where there are none.
SELECT 'total' AS signal, total(visits) AS visits, total(visits) AS alone FROM daily_disguised HAVING total(visits) > 0
UNION ALL
SELECT signals.signal, total(daily.visits) AS visits, total_if(daily.visits, daily.signals = signals.bit) AS alone
FROM daily_disguised AS daily JOIN signals ON (daily.signals & signals.bit) <> 0
GROUP BY signals.signal
ORDER BY visits DESC, alone DESC, signal DESC;

-- Bots in disguise: visits under a browser's name that count as other automated, not as people, because of their day.
-- The first row counts all; the others count the visits with each signal, of which a visit may have several, and with
-- that signal alone.
SELECT 'total' AS signal, total(visits) AS visits, total(visits) AS alone FROM daily_disguised HAVING total(visits) > 0
UNION ALL
SELECT signals.signal, total(daily.visits) AS visits, total_if(daily.visits, daily.signals = signals.bit) AS alone
FROM daily_disguised AS daily JOIN signals ON (daily.signals & signals.bit) <> 0
GROUP BY signals.signal
ORDER BY visits DESC, alone DESC, signal DESC;

-- Bots in disguise: visits with a browser's user agent that count as other automated traffic once their day is judged.
-- The first row counts all of them; each other row counts the visits with one signal, and those with that signal alone.
-- A visit may have several signals.
SELECT 'total' AS signal, total(visits) AS visits, total(visits) AS alone FROM daily_disguised HAVING total(visits) > 0
UNION ALL
SELECT signals.signal, total(daily.visits) AS visits, total_if(daily.visits, daily.signals = signals.bit) AS alone
FROM daily_disguised AS daily JOIN signals ON (daily.signals & signals.bit) <> 0
GROUP BY signals.signal
ORDER BY visits DESC, alone DESC, signal DESC;

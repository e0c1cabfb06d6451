-- The number of stored visits that get a bit (is_set) or lose it: file and own_rule. Parameter: bits.
SELECT name, coalesce(new_signals, 0) & bit <> 0 AS is_set, count(*)
FROM stored_visits, (VALUES ('file', $bits.file), ('own_rule', $bits.own_rule)) AS reasons(name, bit)
WHERE xor(coalesce(new_signals, 0), coalesce(signals, 0)) & bit <> 0
GROUP BY ALL

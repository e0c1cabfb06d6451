-- The visits of crowded days that no rollup covers, whatever else the scope filters by; to choose the words to keep.
CREATE VIEW crowded_visits AS FROM read_visits(getvariable('uncovered_files')) WHERE is_crowded(day);

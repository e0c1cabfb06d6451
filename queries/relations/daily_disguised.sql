-- Daily visits that landed as people's but are bots in disguise or prefetches, by the bits of their signals.
CREATE VIEW daily_disguised_counted AS
SELECT for_domain, day, signals, count(*) AS visits
FROM visits_to_count('daily_disguised') WHERE agent_kind IN ('disguised', 'prefetch') GROUP BY ALL;

CREATE VIEW daily_disguised_stored AS
SELECT for_domain, day, signals, visits FROM rollup_rows('daily_disguised') WHERE has_group('bots');

CREATE VIEW daily_disguised AS FROM query_table(parts_of('daily_disguised'), TRUE);

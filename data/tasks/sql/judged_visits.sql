-- Like merged_visits, but with all signals of each visit: signals that it landed with, and signals of its browser,
-- network, visitor and page, judged by the visits of its day.
-- Parameters: files, outputs, days, bits (the bit of each signal, by name), landed (the bits that judging keeps),
-- first_key, end_key (excluded). NULL: no bound.
WITH visits AS (
    SELECT *, $days[1 + CAST(file_index AS BIGINT)] AS day, $outputs[1 + CAST(file_index AS BIGINT)] AS output
    FROM read_parquet($files, hive_partitioning := FALSE, union_by_name := TRUE)
)
SELECT visits.* EXCLUDE (day) REPLACE (
    coalesce(visits.signals, 0) & $landed | coalesce(judged_visitors.signals, 0)
    | CASE WHEN old_agents.outdated_since <= visits.day THEN $bits.outdated ELSE 0 END
    | CASE WHEN bare_agents.agent IS NULL THEN 0 ELSE $bits.no_assets END
    | CASE WHEN visits.signals & $bits.from_bot <> 0 AND bot_category IN ('human', 'ai_referral')
        THEN $bits.bot_network ELSE 0 END
    | CASE WHEN visits.signals & $bits.from_hosting <> 0 AND old_agents.old_since <= visits.day
        THEN $bits.hosting_superseded ELSE 0 END
    | coalesce(site_visitors.signals, 0)
    | CASE WHEN unfollowed_pages.visit IS NULL THEN 0 ELSE $bits.unfollowed END AS signals
)
FROM visits
LEFT JOIN judged_visitors USING (day, visitor)
LEFT JOIN old_agents ON old_agents.agent = hash(visits.user_agent)
LEFT JOIN loading_agents AS bare_agents ON bare_agents.site = hash(visits.day, coalesce(visits.domain, ''))
    AND bare_agents.agent = hash(visits.user_agent)
    AND bare_agents.pages >= 20 AND 10 * bare_agents.assets < bare_agents.pages
LEFT JOIN site_visitors ON site_visitors.site = hash(visits.day, coalesce(visits.domain, ''))
    AND site_visitors.visitor = visits.visitor
LEFT JOIN unfollowed_pages ON unfollowed_pages.visit = CASE WHEN visits.signals & $bits.loaded_ahead <> 0
    THEN hash(hash(visits.day, coalesce(visits.domain, '')), visits.visitor, visits.visited_at, hash(visits.path)) END
WHERE ($first_key IS NULL
        OR create_sort_key(output, 'ASC NULLS LAST', short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST')
            >= $first_key::BLOB)
    AND ($end_key IS NULL
        OR create_sort_key(output, 'ASC NULLS LAST', short_code, 'ASC NULLS LAST', visited_at, 'ASC NULLS LAST')
            < $end_key::BLOB)
ORDER BY output, short_code, visited_at

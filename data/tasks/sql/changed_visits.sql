-- The number of visits whose classification changes, by old category, new category and user agent.
SELECT stored.bot_category, classified.bot_category, stored.user_agent, count(*)
FROM stored_visits AS stored JOIN classified USING (request)
WHERE row(stored.bot_category, stored.agent_kind, stored.ai_source, stored.agent, stored.operator, stored.confidence,
        stored.detection_method, stored.device_type, stored.operating_system, stored.browser, stored.referrer_type,
        stored.is_malicious)
    IS DISTINCT FROM row(classified.bot_category, classified.agent_kind, classified.ai_source, classified.agent,
        classified.operator, classified.confidence, classified.detection_method, classified.device_type,
        classified.operating_system, classified.browser,
        CASE WHEN stored.is_internal THEN 'internal' ELSE classified.referrer_type END, path_kind = 'probe')
GROUP BY ALL

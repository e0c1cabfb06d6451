-- Which visits come out differently: how many by category before and after and by user agent.
-- Parameter: probe_pattern.
SELECT kept.bot_category, classified.bot_category, kept.user_agent, count(*)
FROM kept JOIN classified USING (request)
WHERE row(kept.bot_category, kept.agent_kind, kept.ai_source, kept.agent, kept.operator, kept.confidence,
        kept.detection_method, kept.device_type, kept.operating_system, kept.browser, kept.referrer_type,
        kept.is_malicious)
    IS DISTINCT FROM row(classified.bot_category, classified.agent_kind, classified.ai_source, classified.agent,
        classified.operator, classified.confidence, classified.detection_method, classified.device_type,
        classified.operating_system, classified.browser, classified.referrer_type, regexp_matches(path, $probe_pattern))
GROUP BY ALL

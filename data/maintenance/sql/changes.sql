-- Which visits come out differently: how many by category before and after and by user agent.
-- Parameter: probe_pattern.
SELECT kept.bot_category, identities.bot_category, kept.user_agent, count(*)
FROM kept JOIN answers USING (request) JOIN identities USING (identity) JOIN origins USING (origin)
WHERE row(kept.bot_category, kept.agent_kind, kept.ai_source, kept.agent, kept.operator, kept.confidence,
        kept.detection_method, kept.device_type, kept.operating_system, kept.browser, kept.referrer_type,
        kept.is_malicious)
    IS DISTINCT FROM row(identities.bot_category, identities.agent_kind, identities.ai_source, identities.agent,
        identities.operator, identities.confidence, identities.detection_method, identities.device_type,
        identities.operating_system, identities.browser, origins.referrer_type, regexp_matches(path, $probe_pattern))
GROUP BY ALL

-- How many visits would be told apart differently, by category before and after, and the most frequent user agent.
SELECT kept.bot_category AS before, identities.bot_category AS after, count(*) AS visits, mode(kept.user_agent) AS example
FROM kept JOIN answers USING (request) JOIN identities USING (identity)
WHERE row(kept.bot_category, kept.agent_kind, kept.ai_source, kept.agent, kept.operator, kept.confidence,
        kept.detection_method, kept.device_type, kept.operating_system, kept.browser)
    IS DISTINCT FROM row(identities.bot_category, identities.agent_kind, identities.ai_source, identities.agent,
        identities.operator, identities.confidence, identities.detection_method, identities.device_type,
        identities.operating_system, identities.browser)
GROUP BY ALL

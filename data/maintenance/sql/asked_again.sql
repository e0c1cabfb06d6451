-- The distinct questions of the visits that are kept, with what was answered before.
SELECT
    request, coalesce(user_agent, ''), coalesce(method, ''), referrer, referrer_type, utm_source,
    bot_category, agent_kind, ai_source, agent, operator, confidence, detection_method,
    any_value(device_type), any_value(operating_system), any_value(browser)
FROM kept GROUP BY ALL

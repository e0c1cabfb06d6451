-- The distinct requests among stored visits, as input for the classifier, with their stored classifications.
SELECT
    request, coalesce(user_agent, ''), coalesce(method, ''), referrer, referrer_type, utm_source, path_kind,
    bot_category, agent_kind, ai_source, agent, operator, confidence, detection_method,
    any_value(device_type), any_value(operating_system), any_value(browser)
FROM stored_visits GROUP BY ALL

-- Macros that templates share: groups of categories, sums, shares and rates, dates and names of days.

CREATE MACRO is_human(bot_category) AS bot_category = 'human';
CREATE MACRO is_ai(bot_category) AS bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral');
CREATE MACRO is_other(bot_category) AS bot_category IN ('search_crawler', 'other_bot');
CREATE MACRO is_referral(bot_category) AS bot_category = 'ai_referral';
CREATE MACRO is_person(bot_category) AS bot_category IN ('human', 'ai_referral');
-- The purpose of fetches by AI agents: for a user of an assistant, for a search index, for training, or for writing code.
CREATE MACRO purpose(bot_category, agent_kind) AS CASE bot_category
    WHEN 'ai_assistant' THEN CASE WHEN agent_kind = 'ai_search_index' THEN 'indexed' ELSE 'asked' END
    WHEN 'ai_training' THEN 'trained' WHEN 'ai_coding_agent' THEN 'coding' END;
CREATE MACRO matches_traffic_type(bot_category, traffic_type) AS
    (traffic_type IS NULL OR bot_category = traffic_type
        OR traffic_type = 'ai' AND is_ai(bot_category) OR traffic_type = 'other' AND is_other(bot_category));

CREATE MACRO matches_traffic_group(bot_category, traffic_group) AS CASE traffic_group
    WHEN 'people' THEN is_person(bot_category) WHEN 'ai' THEN is_ai(bot_category) WHEN 'bots' THEN is_other(bot_category)
    ELSE TRUE END;

-- Paths of texts for AI: pages in Markdown, and the files of llmstxt.org.
CREATE MACRO is_markdown(path) AS lower(path) LIKE '%.md';
CREATE MACRO is_llms_txt(path) AS lower(path) LIKE '%/llms.txt' OR lower(path) LIKE '%/llms-full.txt';

CREATE MACRO is_answered(status) AS coalesce(status < 400, TRUE);  -- a visit without a status may have been

-- Sums as BIGINT, or 0 without rows: other engines and JSON writers do not support the HUGEINT that sum() returns.
CREATE MACRO total(amount) AS coalesce(CAST(sum(amount) AS BIGINT), 0);
CREATE MACRO total_if(amount, condition) AS coalesce(CAST(sum(amount) FILTER (condition) AS BIGINT), 0);

-- part / whole, rounded half up to two decimals with exact integer arithmetic; NULL if whole is 0.
CREATE MACRO rate(part, whole) AS
    CASE WHEN whole > 0 THEN
        CAST((200 * CAST(part AS HUGEINT) + CAST(whole AS HUGEINT)) // (2 * CAST(whole AS HUGEINT)) AS BIGINT) / 100 END;
CREATE MACRO share(part, whole) AS rate(100 * CAST(part AS HUGEINT), whole);
CREATE MACRO change(now, before) AS
    CASE WHEN now >= before THEN share(now - before, before) ELSE 0 - share(before - now, before) END;

-- The hour of a time in UTC with an offset in minutes; both are stored with a visit.
CREATE MACRO hour_of(moment, utc_offset) AS CAST(
    (60 * extract(hour FROM moment) + extract(minute FROM moment) + coalesce(utc_offset, 0) + 1440) % 1440 // 60
AS BIGINT);
CREATE MACRO weekday_of(day) AS CAST(extract(isodow FROM day) AS BIGINT);  -- Monday is 1
CREATE MACRO week_of(day) AS CAST(date_trunc('week', day) AS DATE);  -- its Monday
CREATE MACRO month_of(day) AS CAST(date_trunc('month', day) AS DATE);  -- its first day
CREATE MACRO period_of(day) AS CASE WHEN weekday_of(day) >= 6 THEN 'weekend' ELSE 'weekday' END;
CREATE MACRO day_name_of(weekday) AS
    ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'][weekday];

CREATE MACRO score_of(confidence) AS
    CAST(CASE confidence WHEN 'verified' THEN 1.0 WHEN 'high' THEN 0.9 WHEN 'medium' THEN 0.7 WHEN 'low' THEN 0.4 WHEN 'contradicted' THEN 0.0 END AS DOUBLE);

-- What can be filtered for on each day, whatever the caller filters for now.
CREATE VIEW daily_values AS
SELECT day, domain, short_code, bot_category, ai_source, count(*) AS visits
FROM visits_in_days GROUP BY day, domain, short_code, bot_category, ai_source;

-- Which links were asked for by which kinds of visitors and AI sources.
CREATE VIEW raw_link_sources AS
SELECT for_domain, bit_or(bit_of(day)) AS days, domain, short_code, bot_category, ai_source
FROM raw_visits GROUP BY ALL;

CREATE VIEW monthly_link_sources AS
SELECT domain, short_code, bot_category, ai_source
FROM counted('link_sources');

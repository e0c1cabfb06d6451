-- Daily AI-related visits to links, by AI source.
-- Serves: ai_source
CREATE VIEW daily_link_sources_counted AS
SELECT
    for_domain, day, bot_category, ai_source, short_code, domain, count(*) AS visits,
    count(*) FILTER (is_referral(bot_category)) AS ai_referrals,
    count(*) FILTER (status BETWEEN 400 AND 499) AS errors_4xx,
    count(*) FILTER (status BETWEEN 500 AND 599) AS errors_5xx, max(visited_at) AS last_visit
FROM visits_to_count('daily_link_sources') WHERE is_ai(bot_category) AND short_code IS NOT NULL GROUP BY ALL;

CREATE VIEW daily_link_sources_stored AS
SELECT
    for_domain, day, bot_category, ai_source, short_code, domain, visits, ai_referrals, errors_4xx, errors_5xx,
    last_visit
FROM rollup_rows('daily_link_sources') WHERE matches(ai_source, getvariable('ai_source'));

CREATE VIEW daily_link_sources AS FROM query_table(parts_of('daily_link_sources'), TRUE);

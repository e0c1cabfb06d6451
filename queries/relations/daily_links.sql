-- Visits and visitors of each day by short code; it is NULL for paths that have none. Templates choose links by is_link.
-- A row with 0 visits stands for a short code that was answered that day, but only to visits set aside.
CREATE VIEW daily_links_counted AS
SELECT
    for_domain, day, short_code, domain, total(visits) AS visits, total(human_clicks) AS human_clicks,
    total(ai_visits) AS ai_visits, total(other_visits) AS other_visits,
    count(visitor) FILTER (visits > 0) AS unique_visitors, max(last_visit) AS last_visit,
    bool_or(is_answered) AS is_answered
FROM (
    SELECT
        for_domain, day, short_code, domain, visitor, count(*) FILTER (is_counted) AS visits,
        count(*) FILTER (is_counted AND is_human(bot_category)) AS human_clicks,
        count(*) FILTER (is_counted AND is_ai(bot_category)) AS ai_visits,
        count(*) FILTER (is_counted AND is_other(bot_category)) AS other_visits,
        max(visited_at) FILTER (is_counted) AS last_visit, bool_or(is_answered(status)) AS is_answered
    FROM visits_to_count_with_answers('daily_links') GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_links_stored AS
SELECT
    for_domain, day, short_code, domain, visits, human_clicks, ai_visits, other_visits, unique_visitors,
    last_visit, is_answered
FROM rollup_rows('daily_links');

CREATE VIEW daily_links AS FROM query_table(parts_of('daily_links'), TRUE);

-- Daily requests by AI agents for texts written for them, existing or not: pages in Markdown, and llms.txt.
CREATE VIEW daily_texts_counted AS
SELECT
    for_domain, day, agent, operator, count(*) FILTER (is_markdown(path)) AS markdown,
    count(*) FILTER (is_llms_txt(path)) AS llms_txt, count(*) FILTER (status BETWEEN 400 AND 499) AS errors_4xx,
    max(visited_at) AS last_seen
FROM visits_to_count('daily_texts')
WHERE purpose(bot_category, agent_kind) IS NOT NULL AND (is_markdown(path) OR is_llms_txt(path)) GROUP BY ALL;

CREATE VIEW daily_texts_stored AS
SELECT for_domain, day, agent, operator, markdown, llms_txt, errors_4xx, last_seen
FROM rollup_rows('daily_texts') WHERE has_group('ai');

CREATE VIEW daily_texts AS FROM query_table(parts_of('daily_texts'), TRUE);

-- Requests by AI agents for texts written for them: pages in Markdown, and llms.txt or llms-full.txt, existing or not.
SELECT agent, operator, markdown, llms_txt, errors_4xx, last_seen
FROM (
    SELECT
        coalesce(agent, 'unknown') AS agent, coalesce(operator, 'unknown') AS operator, total(markdown) AS markdown,
        total(llms_txt) AS llms_txt, total(errors_4xx) AS errors_4xx, max(last_seen) AS last_seen
    FROM daily_texts GROUP BY coalesce(agent, 'unknown'), coalesce(operator, 'unknown')
)
ORDER BY markdown + llms_txt DESC, agent, operator;

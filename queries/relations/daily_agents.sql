-- Daily visits and visitors by agent; AI referrals are included, without an agent.
-- Each day has the 10,000 agents with the most visits; (other) has the rest.
-- Serves: traffic_type, agent
CREATE VIEW daily_agents_counted AS
SELECT
    for_domain, day, agent, operator, agent_kind, bot_category, confidence, total(visits) AS visits,
    count(visitor) AS unique_visitors, total(errors_4xx) AS errors_4xx, total(errors_5xx) AS errors_5xx,
    total(bytes_sent) AS bytes_sent, total(signed) AS signed, min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM (
    SELECT
        for_domain, day, agent, operator, agent_kind, bot_category, confidence, visitor, count(*) AS visits,
        count(*) FILTER (status BETWEEN 400 AND 499) AS errors_4xx,
        count(*) FILTER (status BETWEEN 500 AND 599) AS errors_5xx, sum(bytes_sent) AS bytes_sent,
        count(*) FILTER (is_signed) AS signed, min(visited_at) AS first_seen, max(visited_at) AS last_seen
    FROM visits_to_count_from('daily_agents', 'visits_with_cut_agents', has_high_cardinality_days())
    WHERE NOT is_human(bot_category) GROUP BY ALL
)
GROUP BY ALL;

CREATE VIEW daily_agents_stored AS
SELECT
    for_domain, day, agent, operator, agent_kind, bot_category, confidence, visits, unique_visitors, errors_4xx,
    errors_5xx, bytes_sent, signed, first_seen, last_seen
FROM rollup_rows('daily_agents') WHERE matches(agent, getvariable('agent'));

CREATE VIEW daily_agents AS FROM query_table(parts_of('daily_agents'), TRUE);

-- The latest requests in the counts of left-out: twenty that are set aside, and twenty that count as bots.
SELECT reason, visited_at, coalesce(user_agent, 'unknown') AS user_agent, coalesce(domain, 'unknown') AS domain,
    coalesce(path, 'unknown') AS path, coalesce(CAST(status AS VARCHAR), 'unknown') AS status
FROM (
    SELECT
        *, row_number() OVER (
            PARTITION BY aside IS NULL
            ORDER BY visited_at DESC, coalesce(user_agent, 'unknown'), coalesce(domain, 'unknown'),
                coalesce(path, 'unknown'), coalesce(CAST(status AS VARCHAR), 'unknown'), reason
        ) AS place
    FROM (
        SELECT
            visited_at, user_agent, domain, path, status, aside,
            reason_left_out(aside, bot_category, agent_kind, is_malicious, user_agent) AS reason
        FROM visits_with_aside
    )
    WHERE reason IS NOT NULL
)
WHERE place <= 20
ORDER BY visited_at DESC, user_agent, domain, path, status, reason;

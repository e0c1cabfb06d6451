WITH organizations AS (SELECT organization, max(turn) AS last_turn FROM hooks GROUP BY organization),
next AS MATERIALIZED (
    SELECT id, last_turn, turn, coalesce(
        (SELECT number FROM deliveries WHERE hook_id = hooks.id AND status = 'pending' AND due_at <= :at
         ORDER BY due_at, number LIMIT 1),
        (SELECT number FROM deliveries WHERE hook_id = hooks.id AND status = 'pending'
         AND coalesce(attempted_at, created_at) > :at LIMIT 1)) AS number
    FROM hooks JOIN organizations USING (organization)
    WHERE (coalesce(paused_until, '') <= :at OR last_failure_at > :at)
      AND organization NOT IN (SELECT value FROM json_each(:full))
      AND NOT EXISTS (
        SELECT 1 FROM deliveries
        WHERE hook_id = hooks.id AND status = 'pending' AND claimed_until > :at AND claimed_until <= :longest))
SELECT number, id FROM next WHERE number IS NOT NULL ORDER BY last_turn, turn LIMIT 1

-- From where, and on which days, agents came whose addresses can be looked up. Parameter: claims, identities.
SELECT DISTINCT identity, ip, CAST(visited_at AS DATE) AS day
FROM facts JOIN answers USING (request) WHERE list_contains($claims, identity)

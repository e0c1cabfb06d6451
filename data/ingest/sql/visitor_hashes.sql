-- The hashes that stand for the visitors of a day, an address and a user agent each. Parameter: organization.
SELECT CASE WHEN ip NOT IN ('', '-') THEN CAST('0x' || left(sha256(
    salt || chr(0) || $organization || chr(0) || ip || chr(0) || user_agent), 16) AS UBIGINT) END AS visitor
FROM visitor_inputs ORDER BY number

-- The visitor hash of each row of day (by its salt), address and user agent. Parameter: organization.
SELECT CASE WHEN ip NOT IN ('', '-') THEN CAST('0x' || left(sha256(
    concat(salt, chr(0), $organization, chr(0), ip, chr(0), user_agent)), 16) AS UBIGINT) END AS visitor
FROM visitor_inputs ORDER BY number

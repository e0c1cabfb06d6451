-- The signals of the visitors of a day's domain, as bits; visitors without any are left out. Day and domain are one hash.
-- Parameter: bits (of each signal by its name).
CREATE OR REPLACE TEMP TABLE site_visitors AS
SELECT site, visitor, bit_or(signals) AS signals
FROM (
    SELECT site, visitor, CAST($bits.stale AS BIGINT) AS signals FROM stale_visitors
    UNION ALL FROM headerless_visitors
    UNION ALL FROM hosting_visitors
)
GROUP BY site, visitor

-- The signals of each visitor of a domain on a day, as bits; visitors without any are left out. Day and domain: one hash.
CREATE OR REPLACE TEMP TABLE site_visitors AS
SELECT site, visitor, bit_or(signals) AS signals
FROM (
    FROM old_visitors
    UNION ALL FROM headerless_visitors
    UNION ALL FROM hosting_visitors
    UNION ALL FROM old_protocol_visitors
)
GROUP BY site, visitor

-- A monthly relation as a cube keeps it: what was seen by the last cube or is found in visits, with all its days.
SELECT * EXCLUDE (days), bit_or(days) AS days
FROM (
    SELECT * EXCLUDE (organization, month, relation) FROM cubed(getvariable('relation'))
    UNION ALL BY NAME
    FROM query_table('raw_' || getvariable('relation'))
)
GROUP BY ALL;

SELECT (SELECT min(day) FROM files WHERE deletable_at IS NULL AND visits > 0 AND organization = $organization),
    (SELECT max(day) FROM files WHERE deletable_at IS NULL AND visits > 0 AND organization = $organization),
    EXISTS (SELECT 1 FROM pending WHERE organization = $organization),
    (SELECT json_group_array(DISTINCT day) FROM files WHERE deletable_at IS NULL AND visits > 0
        AND organization = $organization AND behaviour_version = 0
        AND organization NOT IN (SELECT organization FROM behaviour_off))

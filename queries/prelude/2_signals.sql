-- Who is a bot in disguise: of the visits that landed as people's, those whose signals weigh enough. Reads one session
-- variable, behaviour: whether signals count for the organization. data/signals.py says what each bit means.

-- One strong signal is enough, or two weak ones.
CREATE MACRO weight_of(signals) AS
    CASE WHEN (signals & 2) <> 0 THEN 2 ELSE 0 END  -- probed
    + CASE WHEN (signals & 4) <> 0 THEN 2 ELSE 0 END  -- outdated
    + CASE WHEN (signals & 8) <> 0 THEN 2 ELSE 0 END  -- errors
    + CASE WHEN (signals & 16) <> 0 THEN 1 ELSE 0 END  -- breadth
    + CASE WHEN (signals & 32) <> 0 THEN 2 ELSE 0 END  -- no_assets
    + CASE WHEN (signals & 64) <> 0 THEN 2 ELSE 0 END  -- stale
    + CASE WHEN (signals & 128) <> 0 THEN 2 ELSE 0 END;  -- sweep

CREATE MACRO is_disguised(landed_category, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND is_person(landed_category) AND weight_of(signals) >= 2;

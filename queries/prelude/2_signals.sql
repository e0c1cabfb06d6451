-- Who is a bot in disguise: of the visits that landed as people's, those whose signals weigh enough. Reads one session
-- variable, behaviour: whether signals count for the organization. data/signals.py says what each bit means.

-- One strong signal is enough, or two weak ones. The strong ones are one case: each costs every answer its planning.
CREATE MACRO weight_of(signals) AS
    -- strong: probed, outdated, errors, no_assets, stale, sweep
    CASE WHEN (signals & (2 + 4 + 8 + 32 + 64 + 128)) <> 0 THEN 2 ELSE 0 END
    -- weak: breadth
    + CASE WHEN (signals & 16) <> 0 THEN 1 ELSE 0 END;

CREATE MACRO is_disguised(landed_category, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND is_person(landed_category) AND weight_of(signals) >= 2;

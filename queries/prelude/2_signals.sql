-- Who is a bot in disguise: of the visits that landed as people's, those with a signal that convicts. Reads one session
-- variable, behaviour: whether signals count for the organization. data/signals.py says which convict; convicting_signals()
-- is the mask of their bits, listed_signals() that of all signals.

CREATE MACRO convicts(signals) AS (coalesce(signals, 0) & convicting_signals()) <> 0;

CREATE MACRO is_disguised(landed_category, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND is_person(landed_category) AND convicts(signals);

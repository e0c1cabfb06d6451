-- Who is a bot in disguise: of the visits that landed as people's, those with a signal that convicts. Reads one session
-- variable, behaviour: whether signals count for the organization. data/signals.py says which convict; convicting_signals()
-- is the mask of their bits, listed_signals() that of all signals.

CREATE MACRO convicts(signals) AS (coalesce(signals, 0) & convicting_signals()) <> 0;

-- Which visits are counted: those without a bit that sets them aside. Reads one session variable, aside: these bits, which
-- are own_signals() and, where the organization does not count files, that of files.
CREATE MACRO aside_bits(signals) AS coalesce(signals, 0) & coalesce(getvariable('aside'), 0);

CREATE MACRO is_counted(signals) AS aside_bits(signals) = 0;

CREATE MACRO reason_aside(signals) AS
    CASE WHEN is_counted(signals) THEN NULL WHEN aside_bits(signals) & own_signals() <> 0 THEN 'own' ELSE 'file' END;

CREATE MACRO is_disguised(landed_category, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND is_person(landed_category) AND convicts(signals);

-- Of those: what a browser loaded ahead and that was not opened, unless another signal convicts it, too.
CREATE MACRO is_prefetch(signals) AS (coalesce(signals, 0) & convicting_signals()) = unfollowed_signal();

-- Whose name is taken back: a visit under the name of an AI agent or a search crawler, of a visitor who scanned that day. The
-- name is kept, as of those whose address contradicts it; an address that was verified is believed.
CREATE MACRO is_impostor(landed_category, agent, confidence, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND coalesce(signals, 0) & scanned_signal() <> 0 AND agent IS NOT NULL
    AND (landed_category = 'search_crawler' OR is_ai(landed_category) AND NOT is_person(landed_category))
    AND coalesce(confidence, '') <> 'verified';

-- Why a visit is in no number of people, where more than the name of its agent says so: what sets it aside, or what shows
-- that it is a bot. NULL for all others.
CREATE MACRO reason_left_out(aside, bot_category, agent_kind, is_malicious, user_agent) AS CASE
    WHEN aside IS NOT NULL THEN aside
    WHEN agent_kind = 'disguised' THEN 'disguised'
    WHEN agent_kind = 'prefetch' THEN 'loaded_ahead'
    WHEN is_person(bot_category) THEN NULL
    WHEN is_malicious THEN 'probe'
    WHEN user_agent IS NULL THEN 'no_agent' END;

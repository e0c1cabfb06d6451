-- Bots in disguise: visits that landed as human or as AI referrals and have a signal that convicts. Reads one session
-- variable, behaviour: whether signals count for the organization. data/signals.py defines which signals convict;
-- convicting_signals() is the mask of their bits, listed_signals() the mask of all signals.

CREATE MACRO convicts(signals) AS (coalesce(signals, 0) & convicting_signals()) <> 0;

-- Counted visits: visits without a bit that sets them aside. Reads one session variable, aside: these bits, which
-- are own_signals() and, if the organization does not count files, the bit of files.
CREATE MACRO aside_bits(signals) AS coalesce(signals, 0) & coalesce(getvariable('aside'), 0);

CREATE MACRO is_counted(signals) AS aside_bits(signals) = 0;

CREATE MACRO reason_aside(signals) AS
    CASE WHEN is_counted(signals) THEN NULL WHEN aside_bits(signals) & own_signals() <> 0 THEN 'own' ELSE 'file' END;

CREATE MACRO is_disguised(landed_category, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND is_person(landed_category) AND convicts(signals);

-- Prefetches among them: a browser loaded the page ahead, it was not opened, and no other signal convicts the visit.
CREATE MACRO is_prefetch(signals) AS (coalesce(signals, 0) & convicting_signals()) = unfollowed_signal();

-- Withdrawn names: visits under the name of an AI agent or a search crawler by a visitor who scanned that day. The name is
-- kept as a claim, as for visits contradicted by their address; agents verified by their address are trusted.
CREATE MACRO is_impostor(landed_category, agent, confidence, signals) AS
    coalesce(getvariable('behaviour'), FALSE) AND coalesce(signals, 0) & scanned_signal() <> 0 AND agent IS NOT NULL
    AND (landed_category = 'search_crawler' OR is_ai(landed_category) AND NOT is_person(landed_category))
    AND coalesce(confidence, '') <> 'verified';

-- The reason why a visit is not counted as human, beyond the name of its agent: why it is set aside, or why it is a
-- bot. NULL for all others.
CREATE MACRO reason_left_out(aside, bot_category, agent_kind, is_malicious, user_agent) AS CASE
    WHEN aside IS NOT NULL THEN aside
    WHEN agent_kind = 'disguised' THEN 'disguised'
    WHEN agent_kind = 'prefetch' THEN 'loaded_ahead'
    WHEN is_person(bot_category) THEN NULL
    WHEN is_malicious THEN 'probe'
    WHEN user_agent IS NULL THEN 'no_agent' END;

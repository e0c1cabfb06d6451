"""A sign: one rule that a request meets, and what the rule makes of it. Which signs there are is not here."""

from typing import NamedTuple

from data.visits import CATEGORY_OF_KIND, Classification

PERSON = Classification("human", None, None, None, None, None, None, "desktop", None, None)
"""A person of whom no device is known yet."""


class Sign(NamedTuple):
    """A rule that a request meets. Of several signs the first one decides."""

    rule: str  # where the rule stands and what it looks for
    evidence: str  # web address of what the rule rests on; '' for a convention of this project
    says: Classification


def automated(
    kind: str,
    agent: str | None = None,
    confidence: str = "low",
    *,
    method: str = "heuristic",
    operator: str | None = None,
    ai_source: str | None = None,
) -> Classification:
    """An automaton of an agent_kind."""
    return Classification(
        CATEGORY_OF_KIND[kind], kind, ai_source, agent, operator, confidence, method, "bot", None, None
    )


def referred(ai_source: str | None, confidence: str | None, method: str) -> Classification:
    """A person whom an AI product sent."""
    return PERSON._replace(
        bot_category="ai_referral",
        agent_kind="referral",
        ai_source=ai_source,
        confidence=confidence,
        detection_method=method,
    )

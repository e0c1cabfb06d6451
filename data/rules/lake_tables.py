"""A lake's tables in addition to the shipped tables: its own agents, and newer tables from a release."""

import hashlib
from collections.abc import Sequence
from importlib import metadata
from typing import Final, NamedTuple

import msgspec

from data.rules.files import FILE_PATTERN
from data.rules.tables import Agent, OwnAgent, Referrer, bytes_of, load

RELEASED: Final = ("agents", "referrers")
"""The shipped tables that a release replaces."""
_RULE_TABLES: Final = (
    *RELEASED, "notcrawlers", "heuristics", "devices", "browsers", "spammers", "campaigns", "probes", "releases",
    "forged",
)  # fmt: skip
_RULE_PACKAGES: Final = ("crawler-user-agents", "ua-parser-builtins")


class Released(NamedTuple):
    """The tables of a release."""

    agents: tuple[Agent, ...]
    referrers: tuple[Referrer, ...]
    sha256: str
    """The SHA-256 of the release's file, in hexadecimal digits."""


class LakeTables(NamedTuple):
    """A lake's own agents, and the tables of a release, which replace the shipped tables."""

    own: tuple[OwnAgent, ...] = ()
    released: Released | None = None

    def agents(self) -> list[Agent]:
        """Return all agents of the lake: its own rows, then the released or shipped rows with other tokens."""
        tokens = {row.token.lower() for row in self.own}
        others = self.released.agents if self.released else load(Agent, "agents")
        return [*self.own, *(row for row in others if row.token.lower() not in tokens)]

    def referrers(self) -> Sequence[Referrer]:
        """Return all referrers of the lake."""
        return self.released.referrers if self.released else load(Referrer, "referrers")


SHIPPED: Final = LakeTables()
"""The tables that this version ships."""


def rules_version(tables: LakeTables = SHIPPED) -> str:
    """Return twelve hexadecimal digits that change whenever a table in _RULE_TABLES, a rule package or FILE_PATTERN
    changes.

    If the lake has its own agents, these digits are followed by `+` and a digest of the agents.
    """
    digest = hashlib.sha256()
    if tables.released:
        digest.update(tables.released.sha256.encode())
    for name in _RULE_TABLES:
        if not tables.released or name not in RELEASED:
            digest.update(bytes_of(name))
    digest.update(FILE_PATTERN.encode())
    for package in _RULE_PACKAGES:
        digest.update(f"{package}=={metadata.version(package)}".encode())
    version, own = digest.hexdigest()[:12], tables.own
    return f"{version}+{hashlib.sha256(msgspec.json.encode(own)).hexdigest()[:12]}" if own else version

"""Releases of the agent and referrer tables, for tests: this version's tables with a few more rows."""

import hashlib

from data.rules.released import newest_check, shipped_release
from tests.support.own_agents import toml_of

AGENT = {
    "token": "Newcomer/", "agent": "Newcomer", "operator": "New Inc.", "agent_kind": "training", "ai_source": "New",
    "confidence": "high", "evidence": "https://new.example/bot", "example": "Newcomer/1.0",
}  # fmt: skip
REFERRER = {
    "host": "new.example", "referrer_type": "ai", "ai_source": "New", "confidence": "medium",
    "evidence": "https://new.example/",
}  # fmt: skip
CHECKED = newest_check(shipped_release())
"""The day of the shipped tables: an older release is not used."""


def release_of(agent=AGENT, referrer=REFERRER, checked=CHECKED):
    """Return a release file with an agent and a referrer before the shipped rows."""
    rows = b""
    for table, row in (("agent", agent), ("referrer", referrer)):
        fields = "".join(f"{name} = {toml_of(value)}\n" for name, value in row.items())
        rows += f"[[{table}]]\n{fields}checked = {checked}\n".encode()
    return rows + shipped_release()


def sha256_of(content):
    return hashlib.sha256(content).hexdigest()

"""Reads and writes release files: tables of agents and referrers that replace the shipped tables.

A file's SHA-256 identifies the release; `traffic agents release` writes the file and prints the SHA-256.
"""

import hashlib
import re
from typing import Final

from data.errors import BadInput
from data.rules.lake_tables import RELEASED, Released
from data.rules.own_agents import agent_problems
from data.rules.tables import Agent, Referrer, bytes_of, checked_rows, parse_tables

MAX_BYTES: Final = 4 << 20
_CHECKED: Final = re.compile(rb"^checked = (\d{4}-\d\d-\d\d)$", re.MULTILINE)
_HOST: Final = re.compile(r"(android-app://)?[a-z0-9.*/-]+")


def shipped_release() -> bytes:
    """Return a release file with the tables of this version."""
    return b"\n".join(map(bytes_of, RELEASED))


def newest_check(content: bytes) -> str:
    """Return the last day on which a row in a release was checked, such as 2026-11-29; "" if it has no rows."""
    return max(_CHECKED.findall(content), default=b"").decode()


def checked_release(name: str, content: bytes) -> Released:
    """Return the tables in the release file `name`. Raises BadInput with file, row and field."""
    if len(content) > MAX_BYTES:
        raise BadInput(f"{name} has {len(content):,} bytes; a release has at most {MAX_BYTES:,}.")
    try:
        tables = parse_tables(("agent", "referrer"), name, content)
        agents = checked_rows(Agent, tables["agent"], f"{name}, [[agent]]")
        referrers = checked_rows(Referrer, tables["referrer"], f"{name}, [[referrer]]")
    except ValueError as error:
        raise BadInput(f"{error}; use a release that this version can read.") from error
    for number, problem in agent_problems(agents):
        raise BadInput(f"{name}, [[agent]], row {number}: {problem}.")
    for number, row in enumerate(referrers, 1):
        if not _HOST.fullmatch(row.host):
            raise BadInput(f"{name}, [[referrer]], row {number}: {row.host!r} is not a host.")
        if len({row.referrer_type == "ai", row.ai_source is not None, row.confidence is not None}) > 1:
            needs = "ai_source and confidence are for referrer_type 'ai', which requires both"
            raise BadInput(f"{name}, [[referrer]], row {number}: {needs}.")
    return Released(tuple(agents), tuple(referrers), hashlib.sha256(content).hexdigest())

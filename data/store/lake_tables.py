"""The tables in a lake's folder that extend or replace the shipped tables: `agents.toml` and `rules.toml`."""

import hashlib
import logging
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from data.disk.files import write_bytes_durably
from data.errors import BadInput
from data.rules.lake_tables import LakeTables, Released, rules_version
from data.rules.released import MAX_BYTES, checked_release, newest_check, shipped_release
from data.store.agents_file import content_of, own_agents
from data.store.layout import LakeFolders

_LOG: Final = logging.getLogger(__name__)
_checked_release: Final = lru_cache(2)(checked_release)


class Names(NamedTuple):
    """The source of the agent and referrer names in use."""

    source: str  # "shipped", or the path of a release
    checked: str  # the last day on which a row was checked, such as 2026-11-29
    is_outdated: bool = False
    """True if the lake's release is older than the shipped tables, which are therefore used."""

    def __str__(self) -> str:
        return f"{self.source}, checked {self.checked}"


def released_tables(lake: LakeFolders) -> Released | None:
    """Return the tables from the release in a lake; None if there is no release, or if it is not newer than the
    shipped tables.

    Raises BadInput with the problem and a remedy.
    """
    content = content_of(lake.released, MAX_BYTES)
    shipped = shipped_release()
    if content in (b"", shipped) or "" < newest_check(content) < newest_check(shipped):
        return None
    return _checked_release(str(lake.released), content)


def names_in_use(lake: LakeFolders) -> Names:
    """Return the source of the names that a lake uses. Raises BadInput as `released_tables` does."""
    content, shipped = content_of(lake.released, MAX_BYTES), shipped_release()
    if released_tables(lake):
        return Names(str(lake.released), newest_check(content))
    return Names("shipped", newest_check(shipped), content not in (b"", shipped))


def sha256_of_release(lake: LakeFolders) -> str:
    """Return the SHA-256 of a lake's release, even if it is not used; "" if there is no release. Raises BadInput."""
    content = content_of(lake.released, MAX_BYTES)
    return hashlib.sha256(content).hexdigest() if content else ""


def names_of(lake: LakeFolders) -> Names:
    """Return the result of names_in_use; if the release is unreadable or invalid, the source is "shipped"."""
    try:
        return names_in_use(lake)
    except BadInput:  # reported by `traffic doctor` and every command that classifies
        return Names("shipped", newest_check(shipped_release()))


def store_release(lake: LakeFolders, name: str, content: bytes, sha256: str) -> None:
    """Store a release in a lake, replacing any earlier release.

    Raises BadInput if the SHA-256 of `content` is not `sha256`, or if the release is invalid or older than the shipped
    tables.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise BadInput(f"{name} has the SHA-256 {found}, not {sha256}; ask its publisher for the correct checksum.")
    checked_release(name, content)
    checked, shipped = newest_check(content), newest_check(shipped_release())
    if checked < shipped:
        raise BadInput(f"{name} is from {checked}, but this version's tables are from {shipped}; use a newer release.")
    staged = lake.staging / f"rules-{uuid.uuid4().hex}.toml"
    write_bytes_durably(content, staged, lake.released)


def lake_tables(lake: LakeFolders) -> LakeTables:
    """Return the tables that a lake uses. Raises BadInput with the problem and a remedy."""
    return LakeTables(own_agents(lake), released_tables(lake))


def rules_version_of(lake: LakeFolders) -> str:
    """Return the version of a lake's rules, including the lake's tables unless they are unreadable or invalid."""
    try:
        return rules_version(lake_tables(lake))
    except BadInput:  # reported by `traffic doctor` and every command that classifies
        return rules_version()


class CurrentTables:
    """The tables that a lake uses, reloaded when a file changes."""

    def __init__(self, lake: LakeFolders) -> None:
        """Read the tables. Raises BadInput if a table is invalid."""
        self._lake = lake
        self._read = self._states()
        self._tables = lake_tables(lake)

    def current(self) -> LakeTables:
        """Return the current tables or, while a file is invalid (which is logged once), the last valid tables."""
        states = self._states()
        if states != self._read:
            self._read = states
            try:
                self._tables = lake_tables(self._lake)
            except BadInput as error:
                _LOG.warning("%s Until the file is valid, the last valid tables are used.", error)
        return self._tables

    def _states(self) -> tuple[tuple[int, ...], ...]:
        return _state_of(self._lake.own_agents), _state_of(self._lake.released)


def _state_of(path: Path) -> tuple[int, ...]:
    """Return values that change when the file changes; an empty tuple if it is missing."""
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

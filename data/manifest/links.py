"""The link files of each organization (a base file and a file of changes), and the edits applied to them."""

import sqlite3
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final, NamedTuple

from data.disk.files import RegisteredFile
from data.errors import Conflict
from data.manifest.clock import format_time, unchecked_bounds
from data.manifest.database import Database
from data.manifest.files import READERS_GRACE
from data.manifest.kinds import LINK_CHANGES, LINK_FILES, expire, expire_of_day, insert, live_of_kind

MoveLinks = Callable[[], RegisteredFile]
"""Moves a staged file to its final path; called inside the transaction that makes it live."""

_LIVE: Final = """
SELECT 'whole', path, bytes, sha256, changed_ns, inode FROM links WHERE deletable_at IS NULL AND organization = ?1
UNION ALL SELECT 'changes', path, bytes, sha256, changed_ns, inode FROM link_changes
WHERE deletable_at IS NULL AND organization = ?1
"""
_SINCE: Final = "SELECT since FROM link_changes WHERE organization = ? AND deletable_at IS NULL"


class LiveLinks(NamedTuple):
    """An organization's live link files."""

    whole: RegisteredFile | None = None
    changes: RegisteredFile | None = None  # the changes since the base file was written

    @property
    def paths(self) -> list[str]:
        """The paths of the files that exist."""
        return [file.path for file in self if file]


class LinkFiles:
    """The link files."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def live(self, organization: str) -> LiveLinks:
        """Return an organization's live link files."""
        rows = self._database.rows(_LIVE, [organization])
        return LiveLinks(**{name: RegisteredFile(*row) for name, *row in rows})

    def all_live(self, organization: str = "", before: datetime | None = None) -> list[RegisteredFile]:
        """Return the live files of one organization, or of all; with `before`, only files last verified before then."""
        kinds = (LINK_FILES, LINK_CHANGES)
        return [file for kind in kinds for file in live_of_kind(self._database, kind, organization, before)]

    def to_fold(self, most: int, before: datetime) -> list[str]:
        """Return the organizations with more than `most` changes, or with a change made before a given time."""
        rows = self._database.rows(
            "SELECT organization FROM link_changes "
            "WHERE deletable_at IS NULL AND (changes > ? OR since NOT BETWEEN ? AND ?) ORDER BY organization",
            [most, *unchecked_bounds(before)],
        )
        return [organization for (organization,) in rows]

    def paths(self, organization: str) -> set[str]:
        """Return the paths of all link files of an organization, live or dead."""
        rows = self._database.rows(
            "SELECT path FROM links WHERE organization = ?1 UNION ALL "
            "SELECT path FROM link_changes WHERE organization = ?1",
            [organization],
        )
        return {path for (path,) in rows}

    def dead_hashes(self, organization: str) -> list[str]:
        """Return the SHA-256 of each replaced base file of an organization."""
        rows = self._database.rows(
            "SELECT sha256 FROM links WHERE organization = ? AND deletable_at IS NOT NULL", [organization]
        )
        return [sha256 for (sha256,) in rows]

    def replace(
        self, organization: str, read: LiveLinks, move: MoveLinks, now: datetime, *, made: Collection[str] = ()
    ) -> None:
        """Move a file into place with `move`; it replaces both the base file and the file of changes.

        `made` are the ids of the queued edits that the file includes; they are recorded. Raises Conflict unless the
        live files are still the `read` files.
        """
        with self._database.transaction() as db:
            _check_live(db, organization, read)
            for kind in (LINK_FILES, LINK_CHANGES):
                expire_of_day(db, kind, organization, None, now + READERS_GRACE)
            insert_links(db, organization, LiveLinks(move()), now)
            if made:
                _note_made(db, organization, made)

    def change(
        self,
        organization: str,
        read: LiveLinks,
        move: MoveLinks,
        now: datetime,
        *,
        changes: int,
        made: Collection[str] = (),
    ) -> None:
        """Move a file into place with `move` and make it the file of changes; `changes` is the number of changes in it.

        `made` and the exceptions are the same as for `replace`.
        """
        with self._database.transaction() as db:
            _check_live(db, organization, read)
            (since,) = db.execute(_SINCE, [organization]).fetchone() or (format_time(now),)
            expire_of_day(db, LINK_CHANGES, organization, None, now + READERS_GRACE)
            insert(db, LINK_CHANGES, [(organization, *move(), format_time(now), changes, since)])
            if made:
                _note_made(db, organization, made)

    def adopt(self, organization: str, read: LiveLinks, newest: LiveLinks, now: datetime) -> None:
        """Replace the live files `read` with the files `newest`, which are already in the lake.

        Raises Conflict unless the `read` files are still live.
        """
        with self._database.transaction() as db:
            _check_live(db, organization, read)
            for kind, file in zip((LINK_FILES, LINK_CHANGES), read, strict=True):
                if file and file.path not in newest.paths:
                    expire(db, kind, file.path, now + READERS_GRACE)
            added = LiveLinks(*(None if file and file.path in read.paths else file for file in newest))
            insert_links(db, organization, added, now)

    def note_made(self, organization: str, ids: Collection[str]) -> None:
        """Record which queued edits were applied, replacing the previous record."""
        with self._database.transaction() as db:
            _note_made(db, organization, ids)

    def made_edits(self, organization: str) -> set[str]:
        """Return the ids of the queued edits in the most recent record."""
        rows = self._database.rows("SELECT id FROM made_edits WHERE organization = ?", [organization])
        return {one for (one,) in rows}


def insert_links(db: sqlite3.Connection, organization: str, links: LiveLinks, now: datetime) -> None:
    """Register the live files of an organization's links. The caller must have begun a transaction.

    The number and age of the changes are unknown, so they will soon be folded.
    """
    if links.whole:
        insert(db, LINK_FILES, [(organization, *links.whole, format_time(now))])
    if links.changes:
        insert(db, LINK_CHANGES, [(organization, *links.changes, format_time(now), 0, "")])


def _check_live(db: sqlite3.Connection, organization: str, read: LiveLinks) -> None:
    if [path for _, path, *_ in db.execute(_LIVE, [organization])] != read.paths:
        raise Conflict(f"the links of {organization} have since been changed by another process; try again.")


def _note_made(db: sqlite3.Connection, organization: str, ids: Collection[str]) -> None:
    db.execute("DELETE FROM made_edits WHERE organization = ?", [organization])
    db.executemany("INSERT INTO made_edits VALUES (?, ?)", [(organization, one) for one in ids])

"""The files with the links of organizations, one live file for each, and the edits of links that were made."""

import sqlite3
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

from data.disk.files import RegisteredFile
from data.manifest.clock import format_time
from data.manifest.database import Database
from data.manifest.files import READERS_GRACE
from data.manifest.kinds import LINK_FILES, expire_of_day, insert, live_of_kind

_LIVE: Final = "SELECT path, bytes, sha256, changed_ns, inode FROM links WHERE deletable_at IS NULL"


class LinkFiles:
    """The files of links."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def live(self, organization: str) -> RegisteredFile | None:
        """The live file of an organization's links; None when it has none."""
        rows = self._database.rows(f"{_LIVE} AND organization = ?", [organization])
        return RegisteredFile(*rows[0]) if rows else None

    def all_live(self, organization: str = "", before: datetime | None = None) -> list[RegisteredFile]:
        """The live files of one organization, or of all; with `before`, only those last verified before it."""
        return live_of_kind(self._database, LINK_FILES, organization, before)

    def dead_hashes(self, organization: str) -> list[str]:
        """The SHA-256 of the replaced files of an organization."""
        rows = self._database.rows(
            "SELECT sha256 FROM links WHERE organization = ? AND deletable_at IS NOT NULL", [organization]
        )
        return [sha256 for (sha256,) in rows]

    def replace(
        self, organization: str, move: Callable[[], RegisteredFile], now: datetime, made: Collection[str] = ()
    ) -> None:
        """Make the file that `move` moves to its place the live one, and note the edits that it makes."""
        with self._database.transaction() as db:
            expire_of_day(db, LINK_FILES, organization, None, now + READERS_GRACE)
            insert_links(db, organization, move(), now)
            if made:
                _note_made(db, organization, made)

    def note_made(self, organization: str, ids: Collection[str]) -> None:
        """Note which of the edits that wait elsewhere were made, instead of those noted before."""
        with self._database.transaction() as db:
            _note_made(db, organization, ids)

    def made_edits(self, organization: str) -> set[str]:
        """The ids of the edits that were noted last."""
        rows = self._database.rows("SELECT id FROM made_edits WHERE organization = ?", [organization])
        return {one for (one,) in rows}


def insert_links(db: sqlite3.Connection, organization: str, links: RegisteredFile, now: datetime) -> None:
    """Register the live links of an organization. The caller has begun a transaction."""
    insert(db, LINK_FILES, [(organization, *links, format_time(now))])


def _note_made(db: sqlite3.Connection, organization: str, ids: Collection[str]) -> None:
    db.execute("DELETE FROM made_edits WHERE organization = ?", [organization])
    db.executemany("INSERT INTO made_edits VALUES (?, ?)", [(organization, one) for one in ids])

"""The kinds of files registered in the manifest, and the statements they have in common.

Each kind has its own table, since the constraints differ: an organization has any number of live visit files for a day,
one rollup for a month, one base file of links, and one file of changes to it. The view registered_files lists the paths
of all kinds.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import starmap
from typing import Any, Final, NamedTuple

from data.disk.files import RegisteredFile
from data.manifest.clock import format_time, unchecked_bounds
from data.manifest.database import Database

COLUMNS: Final = ("organization", "path", "bytes", "sha256", "changed_ns", "inode", "checked_at")
"""The columns common to all kinds, except deletable_at, which is null for live files."""


class FileKind(NamedTuple):
    """A kind of registered file."""

    table: str
    own_columns: tuple[str, ...]
    day: str  # its column with the day or the first day of the month; "NULL" if it has none
    holds_visits: bool  # or counts of visits, so it must be deleted soon after an erasure
    is_backed_up: bool  # otherwise it is recomputed

    def execute(
        self, sql: str, db: sqlite3.Connection, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> sqlite3.Cursor:
        """Execute a statement, with of_kind replaced by this kind's table, and day_of_kind by its day column."""
        return db.execute(sql.replace("day_of_kind", self.day).replace("of_kind", self.table), parameters)

    def rows(self, sql: str, database: Database, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT with the same placeholders as in `execute`."""
        return database.rows(sql.replace("day_of_kind", self.day).replace("of_kind", self.table), parameters)


VISIT_FILES: Final = FileKind(
    "files",
    ("day", "visits", "unfinished_of", "schema_version", "behaviour_version", "facts"),
    day="day",
    holds_visits=True,
    is_backed_up=True,
)
ROLLUP_FILES: Final = FileKind(
    "rollups",
    ("month", "version", "sources", "days_without_domains"),
    day="month",
    holds_visits=True,
    is_backed_up=False,
)
LINK_FILES: Final = FileKind("links", (), day="NULL", holds_visits=False, is_backed_up=True)
LINK_CHANGES: Final = FileKind("link_changes", ("changes", "since"), day="NULL", holds_visits=False, is_backed_up=True)
KINDS: Final = (LINK_FILES, LINK_CHANGES, VISIT_FILES, ROLLUP_FILES)


def insert(db: sqlite3.Connection, kind: FileKind, rows: Iterable[Sequence[object]]) -> None:
    """Register live files, in the caller's transaction. Each row has COLUMNS, followed by the kind's own columns."""
    columns = [*COLUMNS, *kind.own_columns]
    db.executemany(
        f"INSERT INTO {kind.table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        rows,
    )


def expire(db: sqlite3.Connection, kind: FileKind, path: str, deletable_at: datetime) -> bool:
    """Mark a live file as dead, with the time when it may be deleted; return False if it is not live."""
    row = [format_time(deletable_at), path]
    expired = kind.execute("UPDATE of_kind SET deletable_at = ? WHERE path = ? AND deletable_at IS NULL", db, row)
    return expired.rowcount == 1


def expire_of_day(
    db: sqlite3.Connection, kind: FileKind, organization: str, day: date | None, deletable_at: datetime
) -> None:
    """Mark an organization's live files of one day as dead (rollups: of one month; kinds without days: all files)."""
    kind.execute(
        "UPDATE of_kind SET deletable_at = ? WHERE organization = ? AND day_of_kind IS ? AND deletable_at IS NULL",
        db,
        [format_time(deletable_at), organization, day and day.isoformat()],
    )


def live_of_kind(
    database: Database, kind: FileKind, organization: str = "", before: datetime | None = None
) -> list[RegisteredFile]:
    """Return the live files of a kind, of one organization or of all; with `before`, only files last verified before
    that time.

    The files verified longest ago come first.
    """
    rows = kind.rows(
        "SELECT path, bytes, sha256, changed_ns, inode FROM of_kind "
        "WHERE deletable_at IS NULL AND ? IN ('', organization) AND checked_at NOT BETWEEN ? AND ? "
        "ORDER BY checked_at, path",
        database,
        [organization, *unchecked_bounds(before)],
    )
    return [*starmap(RegisteredFile, rows)]

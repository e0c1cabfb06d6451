"""The manifest: the one authority on which Parquet files exist and which logs were imported.

A SQLite database in write-ahead mode with full syncing. How files are written is in landing.py.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from data.database import open_database

MIGRATIONS: Final = (
    """
    CREATE TABLE batches (
        id INTEGER PRIMARY KEY,
        organization TEXT NOT NULL,
        domain TEXT NOT NULL,         -- what --domain said, '' when it said nothing
        sha256 TEXT NOT NULL,         -- of the log's decompressed content
        bytes INTEGER NOT NULL,       -- its length
        whole_bytes INTEGER NOT NULL, -- up to the end of its last finished line
        visits INTEGER NOT NULL,      -- landed by this batch
        log_format TEXT NOT NULL,     -- of its finished lines, auto without any; a grown log keeps it
        imported_at TEXT NOT NULL,
        UNIQUE (organization, domain, sha256)
    );
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        batch INTEGER NOT NULL REFERENCES batches (id),
        organization TEXT NOT NULL,
        day TEXT NOT NULL,
        path TEXT NOT NULL UNIQUE,    -- relative to the lake
        visits INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        mtime_ns INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        unfinished INTEGER NOT NULL,  -- 1: holds the visit of a last line without its newline
        dead_at TEXT
    );
    CREATE INDEX live_files ON files (organization, day) WHERE dead_at IS NULL;
    """,
    """
    CREATE TABLE epochs (
        organization TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL        -- how often what had landed was changed afterwards
    ) WITHOUT ROWID;
    """,
)
"""Entry n takes a manifest from version n to n + 1. Entries are only ever added."""


@dataclass(frozen=True)
class Batch:
    """One import of one log's content."""

    organization: str
    domain: str
    sha256: str
    size: int
    whole_size: int
    visits: int
    imported_at: datetime
    log_format: str = ""
    id: int | None = None


@dataclass(frozen=True)
class LandedFile:
    """One Parquet file of one organization and day, as it lies on disk."""

    organization: str
    day: date
    path: str
    visits: int
    size: int
    sha256: str
    mtime_ns: int
    inode: int
    unfinished: bool


_FILE_COLUMNS = "organization, day, path, visits, bytes, sha256, mtime_ns, inode, unfinished"


def _values(file: LandedFile) -> tuple[object, ...]:
    """The values of _FILE_COLUMNS."""
    _, day, *others = astuple(file)
    return (file.organization, day.isoformat(), *others)


class Manifest:
    """An open manifest. Safe to use from several threads; several processes may hold the same one."""

    def __init__(self, path: Path) -> None:
        """Open or create the manifest. Raises LakeDamaged when a newer program wrote it."""
        self._lock = threading.Lock()
        self._db = open_database(path, MIGRATIONS)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The database inside one write transaction, committed at the end or rolled back on any error."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, parameters).fetchall()

    def batches(self, organization: str, domain: str) -> list[Batch]:
        """Every import of this organization and domain, longest content first."""
        rows = self._rows(
            "SELECT sha256, bytes, whole_bytes, visits, imported_at, log_format, id FROM batches "
            "WHERE organization = ? AND domain = ? ORDER BY bytes DESC",
            [organization, domain],
        )
        return [
            Batch(organization, domain, sha256, size, whole, visits, datetime.fromisoformat(at), log_format, key)
            for sha256, size, whole, visits, at, log_format, key in rows
        ]

    def commit(self, batch: Batch, continues: Batch | None, place: Callable[[], list[LandedFile]]) -> None:
        """Register a batch and its files in one transaction.

        `place` is called inside the transaction and moves the files to where they will be read.
        The visit of an unfinished last line of `continues` is replaced by what this batch read of it.
        Raises sqlite3.IntegrityError for a content that is registered already.
        """
        with self.transaction() as db:
            now = batch.imported_at.isoformat()
            cursor = db.execute(
                "INSERT INTO batches (organization, domain, sha256, bytes, whole_bytes, visits, log_format, "
                "imported_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [batch.organization, batch.domain, batch.sha256, batch.size, batch.whole_size, batch.visits,
                 batch.log_format, now],
            )  # fmt: skip
            if continues is not None:
                db.execute(
                    "UPDATE files SET dead_at = ? WHERE batch = ? AND unfinished AND dead_at IS NULL",
                    [now, continues.id],
                )
            db.executemany(
                f"INSERT INTO files (batch, {_FILE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(cursor.lastrowid, *_values(file)) for file in place()],
            )

    def replace(self, files: Sequence[LandedFile], place: Callable[[], list[LandedFile]], now: datetime) -> None:
        """Put new files in the place of live ones of one organization, one for one, in one transaction.

        `place` is called inside the transaction and moves the files to where they will be read.
        The organization's epoch moves on: answers computed from the old files are no longer given.
        """
        with self.transaction() as db:
            for old, new in zip(files, place(), strict=True):
                db.execute(
                    f"INSERT INTO files (batch, {_FILE_COLUMNS}) "
                    "SELECT batch, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM files WHERE path = ?",
                    [*_values(new), old.path],
                )
                db.execute("UPDATE files SET dead_at = ? WHERE path = ?", [now.isoformat(), old.path])
            db.execute(
                "INSERT INTO epochs VALUES (?, 1) ON CONFLICT (organization) DO UPDATE SET epoch = epoch + 1",
                [files[0].organization],
            )

    def epoch(self, organization: str) -> int:
        """How often visits of an organization that had landed were changed afterwards."""
        rows = self._rows("SELECT epoch FROM epochs WHERE organization = ?", [organization])
        return int(rows[0][0]) if rows else 0

    def live_files(self, organization: str, start: date, end: date) -> list[LandedFile]:
        """The files that hold the visits of one organization from `start` to `end`, both included."""
        rows = self._rows(
            f"SELECT {_FILE_COLUMNS} FROM files WHERE organization = ? AND day BETWEEN ? AND ? AND dead_at IS NULL "
            "ORDER BY path",
            [organization, start.isoformat(), end.isoformat()],
        )
        return [
            LandedFile(name, date.fromisoformat(day), path, visits, size, sha256, mtime_ns, inode, bool(unfinished))
            for name, day, path, visits, size, sha256, mtime_ns, inode, unfinished in rows
        ]

    def holds(self, path: str) -> bool:
        """Whether a file, live or dead, is registered."""
        return bool(self._rows("SELECT 1 FROM files WHERE path = ?", [path]))

    def refresh_stat(self, file: LandedFile, mtime_ns: int, inode: int) -> None:
        """Remember where a file lies now that its bytes were found unchanged."""
        with self.transaction() as db:
            db.execute("UPDATE files SET mtime_ns = ?, inode = ? WHERE path = ?", [mtime_ns, inode, file.path])

    def organizations(self) -> list[str]:
        """Every organization that has imported something."""
        return [name for (name,) in self._rows("SELECT DISTINCT organization FROM batches ORDER BY organization")]

    def close(self) -> None:
        """Close the database."""
        self._db.close()

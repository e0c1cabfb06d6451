"""The manifest: the SQLite database that records which Parquet files are live and which logs were imported.

Its tables are declared in sql/; the modules of data/store use some, too, and write the files.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from data.disk.files import check_identity, identity
from data.errors import Conflict
from data.local_time import DEFAULT_ZONE, today
from data.manifest.arrivals import Arrivals
from data.manifest.batches import Batch, batch_of, put_batch
from data.manifest.clock import TOLERANCE, format_time, unchecked_bounds
from data.manifest.files import READERS_GRACE, LandedFile, Publisher, Replacement
from data.manifest.organizations import (
    OrganizationState,
    begin_epoch,
    check_zone_is,
    define_today_in,
    set_zone,
    state_of,
)
from data.manifest.schema import open_database, transaction
from data.sql import read_sql

Connect = Callable[[Path, Sequence[str], str], sqlite3.Connection]
MIGRATIONS: Final = tuple(read_sql("data.manifest", f"sql/manifest_{one}") for one in (1, 2, 3))
"""Migrations are appended, never changed."""
_FILE_COLUMNS: Final = (
    "organization, day, path, visits, bytes, sha256, changed_ns, inode, checked_at, unfinished_of, schema_version, "
    "behaviour_version"
)

_SELECT_LIVE: Final = f"SELECT {_FILE_COLUMNS} FROM files WHERE deletable_at IS NULL AND "


def insert_files(db: sqlite3.Connection, files: Iterable[LandedFile]) -> None:
    """Register live files. The caller has begun a transaction."""
    db.executemany(
        f"INSERT INTO files ({_FILE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (file.organization, file.day.isoformat(), file.path, file.visits, file.size, file.sha256, file.changed_ns,
             file.inode, format_time(file.checked_at), file.unfinished_of, file.schema_version, file.behaviour_version)
            for file in files
        ],
    )  # fmt: skip


def _file_of(row: tuple[Any, ...]) -> LandedFile:
    organization, day, path, visits, size, sha256, changed_ns, inode, checked_at, *rest = row
    day, checked = date.fromisoformat(day), datetime.fromisoformat(checked_at)
    return LandedFile(organization, day, path, visits, size, sha256, changed_ns, inode, checked, *rest)


class Manifest:
    """An open manifest. Thread-safe; several processes may open the same one."""

    def __init__(self, path: Path, refuse_new: str = "", connect: Connect = open_database) -> None:
        """Open or create the manifest; arguments as for open_database. Raises LakeDamaged if it is newer."""
        with ExitStack() as opened:  # readers wait for no writer, and those of a state for no other reader
            refusals = (refuse_new, "", "")
            databases = [opened.enter_context(closing(connect(path, MIGRATIONS, refusal))) for refusal in refusals]
            self._writer, self._reader, self._state_reader = databases
            define_today_in(self._reader)
            self._opened = path, identity(path)
            opened.pop_all()
        self._writing, self._reading, self._reading_state = threading.Lock(), threading.Lock(), threading.Lock()
        self.session = 0  # of the visits that are enqueued by this object (footers.session_of); 0: none was yet

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, committed at the end of the context or rolled back on any error.

        Raises OSError (ESTALE) when the manifest was moved or replaced: SQLite would write on into the old one.
        """
        with self.locked():
            yield self._writer

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all others from moving and registering files. Raises OSError like `transaction`."""
        with self._writing, transaction(self._writer):
            check_identity(*self._opened)
            yield

    def check_current(self) -> None:
        """Raise OutdatedManifest if nothing may be written; only the manifest of a lake can be an older one."""

    def rows(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
        """The result of a SELECT on committed data."""
        with self._reading:
            return self._reader.execute(sql, parameters).fetchall()

    def batches(self, organization: str, domain: str | None = None) -> list[Batch]:
        """Every import of an organization, or of its logs with this domain; longest content first."""
        rows = self.rows(
            "SELECT * FROM batches WHERE organization = ? AND domain = coalesce(?, domain) ORDER BY bytes DESC",
            [organization, domain],
        )
        return [batch_of(row) for row in rows]

    def commit(
        self,
        organization: str,
        batch: Batch,
        continues: Batch | None,
        publish: Publisher,
        *,
        zone: str = DEFAULT_ZONE,
        arrived: Arrivals | None = None,
    ) -> None:
        """Register a batch, as put_batch does, and its files, dated in a zone, in one transaction.

        The visit of the unfinished last line of `continues` expires, since this batch has read that line again.
        Raises as put_batch, and ZoneChanged if the organization's zone is another one.
        """
        with self.transaction() as db:
            check_zone_is(db, organization, zone)
            put_batch(db, organization, batch, arrived)
            if continues is not None:
                expiry = format_time(datetime.fromisoformat(batch.imported_at) + READERS_GRACE)
                db.execute(
                    "UPDATE files SET deletable_at = ? WHERE unfinished_of = ? AND deletable_at IS NULL",
                    [expiry, continues.id],
                )
            insert_files(db, publish())

    def replace_files(self, replacement: Replacement, publish: Publisher) -> list[LandedFile]:
        """Replace live files of one organization at once; return the new ones. Raises Conflict unless all are live."""
        organization, expiry = replacement.files[0].organization, format_time(replacement.deletable_at)
        with self.transaction() as db:
            for file in replacement.files:
                expired = db.execute(
                    "UPDATE files SET deletable_at = ? WHERE path = ? AND deletable_at IS NULL", [expiry, file.path]
                )
                if expired.rowcount != 1:
                    raise Conflict(f"{file.path} was replaced by another process in the meantime; try again.")
            published = publish()
            insert_files(db, published)
            if replacement.changes_answers or replacement.judges:
                begin_epoch(db, organization)
            if replacement.changes_answers:  # rollups of these months are out of date
                db.executemany(
                    "UPDATE rollups SET deletable_at = ? WHERE organization = ? AND month = ? AND deletable_at IS NULL",
                    {(expiry, organization, file.day.replace(day=1).isoformat()) for file in replacement.files},
                )
            if replacement.erased_at:
                db.execute(
                    "UPDATE copies SET erasures = erasures + 1, due_since = coalesce(due_since, ?) "
                    "WHERE organization = ?",
                    [format_time(replacement.erased_at), organization],
                )
        return published

    def state(self, organization: str) -> OrganizationState:
        """The epoch and the zone of an organization.

        Asked before every answer, on the event loop of the server. It takes microseconds and waits for no other read.
        Raises OSError like `transaction`: SQLite would read on in the old one.
        """
        check_identity(*self._opened)
        with self._reading_state:
            return state_of(self._state_reader, organization)

    def epoch(self, organization: str) -> int:
        """How often stored visits of an organization were changed. Cached answers of earlier epochs are out of date."""
        return self.state(organization).epoch

    def zone(self, organization: str) -> str:
        """The zone in which the visits of an organization are dated."""
        return self.state(organization).zone

    def set_zone(self, organization: str, zone: str) -> None:
        """Set the zone of an organization that has no visits. Raises BadInput."""
        with self.transaction() as db:
            set_zone(db, organization, zone)

    def today(self, organization: str, now: datetime) -> date:
        """The day of an organization at a timezone-aware time."""
        return today(self.zone(organization), now)

    def live_files(self, organization: str, start: date = date.min, end: date = date.max) -> list[LandedFile]:
        """The live files of one organization from `start` to `end` (inclusive) that have visits, sorted by path."""
        days = [organization, start.isoformat(), end.isoformat()]
        rows = self.rows(_SELECT_LIVE + "organization = ? AND day BETWEEN ? AND ? AND visits > 0 ORDER BY path", days)
        return [_file_of(row) for row in rows]

    def removal_records(self, organization: str) -> list[LandedFile]:
        """The live files of one organization without visits: their footers record which files were removed."""
        return [_file_of(row) for row in self.rows(_SELECT_LIVE + "organization = ? AND visits = 0", [organization])]

    def unfinished_files(self, batch: Batch) -> list[LandedFile]:
        """The live files with the visit of the unfinished last line of a batch."""
        return [_file_of(row) for row in self.rows(_SELECT_LIVE + "unfinished_of = ? AND visits > 0", [batch.id])]

    def unchecked_files(self, before: datetime) -> list[LandedFile]:
        """The live files whose bytes were last verified before a time, the longest ago first."""
        rows = self.rows(_SELECT_LIVE + "checked_at NOT BETWEEN ? AND ? ORDER BY checked_at", unchecked_bounds(before))
        return [_file_of(row) for row in rows]

    def is_live(self, path: str) -> bool:
        """Whether a file of visits, rollups or links is live now."""
        return bool(self.rows("SELECT 1 FROM registered_files WHERE path = ? AND deletable_at IS NULL", [path]))

    def is_registered(self, path: str) -> bool:
        """Whether a file of visits, rollups or links is registered, live or dead."""
        return bool(self.rows("SELECT 1 FROM registered_files WHERE path = ?", [path]))

    def refresh_stat(self, path: str, changed_ns: int, inode: int, now: datetime) -> None:
        """Record the status of a file after its bytes were hashed. With `changed_ns` 0 it will be hashed again."""
        with self.transaction() as db:
            row = [changed_ns, inode, format_time(now), path]
            db.execute("UPDATE files SET changed_ns = ?, inode = ?, checked_at = ? WHERE path = ?", row)
            db.execute("UPDATE links SET changed_ns = ?, inode = ?, checked_at = ? WHERE path = ?", row)
            db.execute("UPDATE rollups SET changed_ns = ?, inode = ?, checked_at = ? WHERE path = ?", row)

    def deletable_files(self, now: datetime) -> list[str]:
        """The paths of dead files whose grace period is over, or ends later than it can by this clock."""
        bounds = [format_time(now), format_time(now + READERS_GRACE + TOLERANCE)]
        rows = self.rows("SELECT path FROM registered_files WHERE deletable_at <= ? OR deletable_at > ?", bounds)
        return [path for (path,) in rows]

    def organizations(self) -> list[str]:
        """Every organization with imports, files or changes, sorted."""
        rows = self.rows("SELECT organization FROM batches UNION SELECT organization FROM files "
                         "UNION SELECT organization FROM epochs ORDER BY organization")  # fmt: skip
        return [name for (name,) in rows]

    def close(self) -> None:
        """Close the database."""
        for connection in (self._writer, self._reader, self._state_reader):
            connection.close()


def expire_now(manifest: Manifest, organization: str, before: date | None, deletable_at: datetime) -> list[str]:
    """Make dead files of an organization deletable at `deletable_at` if that is sooner; return their paths.

    With `before`, only files of days before that date.
    """
    first = before and before.isoformat()
    parameters = {"by": format_time(deletable_at), "organization": organization, "before": first}
    with manifest.transaction() as db:
        rows = db.execute(
            "UPDATE files SET deletable_at = min(deletable_at, :by) WHERE organization = :organization "
            "AND deletable_at IS NOT NULL AND (:before IS NULL OR day < :before) RETURNING path",
            parameters,
        ).fetchall()
        rows += db.execute(
            "UPDATE rollups SET deletable_at = min(deletable_at, :by) WHERE organization = :organization "
            "AND deletable_at IS NOT NULL AND (:before IS NULL OR month < :before) RETURNING path",
            parameters,
        ).fetchall()
    return sorted(path for (path,) in rows)


def purge(manifest: Manifest, paths: Iterable[str]) -> None:
    """Remove deleted dead files from the manifest."""
    with manifest.transaction() as db:
        for path in paths:
            db.execute("DELETE FROM files WHERE path = ? AND deletable_at IS NOT NULL", [path])
            db.execute("DELETE FROM rollups WHERE path = ? AND deletable_at IS NOT NULL", [path])
            db.execute("DELETE FROM links WHERE path = ? AND deletable_at IS NOT NULL", [path])

"""Opens and migrates the SQLite databases of a lake."""

import atexit
import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from data.disk.files import move_durably, sync
from data.errors import LakeDamaged, NewerVersion

_LOG: Final = logging.getLogger(__name__)
_MAX_WAIT_SECONDS: Final = 60.0
"""How long a database is waited for that another process writes."""


class _Connection(sqlite3.Connection):
    """A connection that can be referred to weakly."""


_OPEN: Final = weakref.WeakSet[_Connection]()


@atexit.register
def _close_all() -> None:
    """Close every database when the program ends: the last one to do so empties the write-ahead log and removes it."""
    for db in list(_OPEN):
        db.close()


class Readers:
    """Connections for reads: a caller has one for itself, so that it waits for no other read and no write."""

    def __init__(self, opening: Callable[[], sqlite3.Connection]) -> None:
        """Open the first one; `opening` opens another one while all are in use."""
        self._opening = opening
        self._opened = [opening()]
        self.idle = [*self._opened]
        """The connections that are not in use; there are as many in all as there ever were reads at once."""

    @contextmanager
    def borrow(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to the caller alone. Raises what `opening` raises."""
        try:
            reader = self.idle.pop()  # atomic, as append is
        except IndexError:
            reader = self._opening()
            self._opened.append(reader)
        try:
            yield reader
        finally:
            self.idle.append(reader)

    def close(self) -> None:
        """Close all of them."""
        for reader in self._opened:
            reader.close()


def open_database(path: Path, migrations: Sequence[str], refuse_new: str = "") -> sqlite3.Connection:
    """Open or create a database in write-ahead mode with full syncing, and apply missing migrations.

    With `refuse_new`, the end of a sentence, a missing or empty database (version 0) is not created but damage.
    The sentence says what to do, also about a file that is not a database.

    Entry n of `migrations` migrates version n to n + 1; each statement ends with ; at the end of a line.
    Before a migration, the database is copied to <name>.before-<version> in the same folder.
    Raises LakeDamaged when it cannot be used, or when a newer version of this program wrote it.
    """
    db = None
    try:
        if refuse_new and not (path.exists() and path.stat().st_size):
            raise LakeDamaged(f"{path} is {'empty' if path.exists() else 'missing'}, {refuse_new}")
        is_alone = not path.with_name(f"{path.name}-wal").exists()  # whose frames would complete it
        db = sqlite3.connect(
            path, timeout=_MAX_WAIT_SECONDS, isolation_level=None, check_same_thread=False, factory=_Connection
        )
        _OPEN.add(db)
        mode = _begin_log(db)
        (page_size,) = db.execute("PRAGMA page_size").fetchone()
        if refuse_new and is_alone and path.stat().st_size % page_size:  # SQLite would read zeros, as an empty index
            raise LakeDamaged(f"{path} is cut short, {refuse_new}")
        if mode != "wal":
            raise LakeDamaged(f"{path} cannot keep a write-ahead log here; put the lake on a local disk.")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")  # overwrite deleted rows: pending visits are stored here
        _migrate(db, path, migrations, refuse_new)
    except (sqlite3.DatabaseError, OSError, LakeDamaged) as error:
        if db:
            db.close()
        if isinstance(error, LakeDamaged):
            raise
        if refuse_new and not isinstance(error, sqlite3.OperationalError | OSError):
            raise LakeDamaged(f"{path} cannot be used ({error}), {refuse_new}") from error
        raise LakeDamaged(f"{path} cannot be used: {disk_problem(error) or error}.") from error
    return db


def _begin_log(db: sqlite3.Connection) -> str:
    """Set write-ahead mode; return the mode that the database has then."""
    ends_at = time.monotonic() + _MAX_WAIT_SECONDS
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:  # at once, while another process creates the database, too
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise
            time.sleep(0.01)
        else:
            return str(mode)


def disk_problem(error: Exception) -> str:
    """What to do about an error of SQLite that comes from the disk; "" for any other."""
    if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"the disk is full or fails ({error}); make room on it, or look at it, then try again"
    return ""


def migrate_copy(path: Path, migrations: Sequence[str]) -> None:
    """Apply missing migrations to a database that is only a copy. Raises LakeDamaged, sqlite3.Error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        _migrate(db, path, migrations, is_copy=True)


def create_database(path: Path, staged: Path, migrations: Sequence[str]) -> None:
    """Create a database if `path` does not exist, complete or not at all; only its owner can read it.

    `staged` is a path on the same disk, where it is built.
    """
    if path.exists():
        return
    os.close(os.open(staged, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(staged)) as db:
            version = f"PRAGMA user_version = {len(migrations)};"
            # synced once, when it is whole: statement by statement, that takes a disk a tenth of a second and more
            db.executescript("\n".join(["PRAGMA synchronous = OFF; BEGIN;", *migrations, version, "COMMIT;"]))
        sync(staged)
        with suppress(FileExistsError):  # another process was faster
            path.hardlink_to(staged)
        sync(path.parent)
    finally:
        staged.unlink()


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit the statements of the context together, or none of them when anything is raised.

    No other connection writes meanwhile. Raises sqlite3.OperationalError when the connection's timeout ends first.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _migrate(
    db: sqlite3.Connection, path: Path, migrations: Sequence[str], refuse_new: str = "", is_copy: bool = False
) -> None:
    if db.execute("PRAGMA user_version").fetchone() == (len(migrations),):
        return
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise NewerVersion(
            f"{path} has version {version}, this program knows up to {len(migrations)}; upgrade the program."
        )
    if version == 0 and refuse_new:
        raise LakeDamaged(f"{path} is empty, {refuse_new}")
    if 0 < version < len(migrations) and not is_copy:
        old = path.with_name(f"{path.name}.before-{version}")
        staged = old.with_name(f"{old.name}.partial")
        staged.unlink(missing_ok=True)  # left over from a killed program
        os.close(os.open(staged, os.O_CREAT | os.O_EXCL, 0o600))  # readable by its owner only
        with closing(sqlite3.connect(path, timeout=60)) as original, closing(sqlite3.connect(staged)) as copy:
            original.backup(copy)
        sync(staged)
        move_durably(staged, old)
        _LOG.warning("%s is being upgraded; a copy of the old version is in %s.", path, old)
    for script in migrations[version:]:
        for statement in script.split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(migrations)}")
    db.execute("COMMIT")

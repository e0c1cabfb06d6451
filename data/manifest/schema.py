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
"""Maximum time to wait for a database that another process is writing to."""


class _Connection(sqlite3.Connection):
    """A connection that supports weak references."""


_OPEN: Final = weakref.WeakSet[_Connection]()


@atexit.register
def _close_all() -> None:
    """Close all databases at exit: the last connection empties the write-ahead log and removes it."""
    for db in list(_OPEN):
        db.close()


class Readers:
    """A pool of connections for reading: callers get separate connections, so they never wait for each other."""

    def __init__(self, opening: Callable[[], sqlite3.Connection]) -> None:
        """Open the first connection; `opening` is called for another when all are in use."""
        self._opening = opening
        self._opened = [opening()]
        self.idle = [*self._opened]
        """The idle connections; the pool grows to the highest number of concurrent reads."""

    @contextmanager
    def borrow(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for exclusive use. Raises the exceptions of `opening`."""
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
        """Close all connections."""
        for reader in self._opened:
            reader.close()


def open_database(path: Path, migrations: Sequence[str], refuse_new: str = "") -> sqlite3.Connection:
    """Open or create a database in write-ahead mode with full syncing, and apply missing migrations.

    With `refuse_new`, a missing or empty database (version 0) counts as damaged and is not created. `refuse_new` is the
    end of the message, with the remedy; it is also used for a file that is not a database.

    Entry n of `migrations` migrates version n to n + 1; each statement ends with a semicolon at the end of a line.
    Before a migration, the database is copied to <name>.before-<version> in the same folder.
    Raises LakeDamaged if the database cannot be used, or if a newer version of this program wrote it.
    """
    db = None
    try:
        if refuse_new and not (path.exists() and path.stat().st_size):
            raise LakeDamaged(f"{path} is {'empty' if path.exists() else 'missing'}, {refuse_new}")
        is_alone = not path.with_name(f"{path.name}-wal").exists()  # a write-ahead log would complete it
        db = sqlite3.connect(
            path, timeout=_MAX_WAIT_SECONDS, isolation_level=None, check_same_thread=False, factory=_Connection
        )
        _OPEN.add(db)
        mode = _begin_log(db)
        (page_size,) = db.execute("PRAGMA page_size").fetchone()
        if refuse_new and is_alone and path.stat().st_size % page_size:  # SQLite would read zeros
            raise LakeDamaged(f"{path} is truncated, {refuse_new}")
        if mode != "wal":
            raise LakeDamaged(f"{path} cannot use a write-ahead log here; put the lake on a local disk.")
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
    """Set write-ahead mode; return the resulting mode."""
    ends_at = time.monotonic() + _MAX_WAIT_SECONDS
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:  # if another process is creating the database
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise
            time.sleep(0.01)
        else:
            return str(mode)


def disk_problem(error: Exception) -> str:
    """Return the cause and the remedy if the disk caused an SQLite error; "" for other errors."""
    if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"the disk is full or failing ({error}); free space or check the disk, then try again"
    return ""


def migrate_copy(path: Path, migrations: Sequence[str]) -> None:
    """Apply missing migrations to a copy of a database. Raises LakeDamaged or sqlite3.Error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        _migrate(db, path, migrations, is_copy=True)


def create_database(path: Path, staged: Path, migrations: Sequence[str]) -> None:
    """Create a database atomically if `path` does not exist, readable only by its owner.

    It is built at `staged`, a path on the same disk.
    """
    if path.exists():
        return
    os.close(os.open(staged, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(staged)) as db:
            version = f"PRAGMA user_version = {len(migrations)};"
            # synced once, when complete: on some disks, a sync per statement takes a tenth of a second or more
            db.executescript("\n".join(["PRAGMA synchronous = OFF; BEGIN;", *migrations, version, "COMMIT;"]))
        sync(staged)
        with suppress(FileExistsError):  # another process was faster
            path.hardlink_to(staged)
        sync(path.parent)
    finally:
        staged.unlink()


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit the statements in the context together, or none of them if it raises.

    No other connection writes during the context. Raises sqlite3.OperationalError if another connection keeps writing
    beyond this connection's timeout.
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
            f"{path} has version {version}, but this program supports only versions up to {len(migrations)}; "
            "upgrade the program."
        )
    if version == 0 and refuse_new:
        raise LakeDamaged(f"{path} is empty, {refuse_new}")
    if 0 < version < len(migrations) and not is_copy:
        old = path.with_name(f"{path.name}.before-{version}")
        staged = old.with_name(f"{old.name}.partial")
        staged.unlink(missing_ok=True)  # left by a killed program
        os.close(os.open(staged, os.O_CREAT | os.O_EXCL, 0o600))  # readable only by its owner
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

"""Reads the databases of a lake that cannot be written to, such as a mounted snapshot, without writing next to them."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from data.errors import LakeDamaged
from data.manifest.schema import migrate_copy

_LOGS: Final = ("-wal", "-journal")
"""Suffixes of SQLite's log files, which contain changes to apply (-wal) or to roll back (-journal)."""
_ATTEMPTS: Final = 5


def is_read_only(root: Path) -> bool:
    """Return whether this process lacks permission to write to a lake's folder or to its manifest."""
    return not all(os.access(path, os.W_OK) for path in (root, root / "manifest.sqlite"))


def connect_read_only(path: Path, scratch: Path) -> sqlite3.Connection:
    """Open a database read-only. Raises sqlite3.Error or OSError.

    If SQLite cannot read the log in place, because it cannot create the shared memory (-shm), the database is copied
    with its log into the folder `scratch`. The database is opened as immutable only if there is no log, since SQLite
    would ignore a log.
    """
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError:
        if not any(size for size, _ in _state(path)[1:]):
            return _connect(path, "mode=ro&immutable=1")
    return _connect(_copy_database(path, scratch), "mode=rw")


def open_database_read_only(path: Path, migrations: Sequence[str], scratch: Path) -> sqlite3.Connection:
    """Open a database read-only, in this program's schema version: an older database is migrated in a copy.

    Raises LakeDamaged if it is missing or empty, cannot be read, or was written by a newer version of this program.
    """
    try:
        db = connect_read_only(path, scratch)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == len(migrations):
            return db
        db.close()
        if version == 0:
            raise LakeDamaged(f"{path} is empty; restore the lake from a backup.")
        copy = _copy_database(path, scratch)
        migrate_copy(copy, migrations)
        return _connect(copy, "mode=rw")
    except (sqlite3.Error, OSError) as error:
        raise LakeDamaged(f"{path} cannot be used: {error}.") from error


def _connect(path: Path, options: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{path.as_uri()}?{options}", uri=True, timeout=60, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA query_only = ON")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the file, and its log
    except BaseException:
        db.close()
        raise
    return db


def _copy_database(path: Path, scratch: Path) -> Path:
    """Copy a database and its logs into a new folder in `scratch`; return the path of the copy. If they change in the
    meantime, copy them again. Raises OSError if they keep changing.
    """
    target = Path(tempfile.mkdtemp(dir=scratch)) / path.name
    for _ in range(_ATTEMPTS):
        before = _state(path)
        for suffix in ("", *_LOGS):
            source, copy = Path(f"{path}{suffix}"), Path(f"{target}{suffix}")
            copy.unlink(missing_ok=True)
            if source.exists():
                shutil.copyfile(source, copy)
        if _state(path) == before:
            return target
    raise OSError(f"{path} is being written to; try again later")


def _state(path: Path) -> list[tuple[int, int]]:
    """Return the size and modification time of a database and of its logs."""
    files = [Path(f"{path}{suffix}") for suffix in ("", *_LOGS)]
    return [(file.stat().st_size, file.stat().st_mtime_ns) if file.exists() else (0, 0) for file in files]

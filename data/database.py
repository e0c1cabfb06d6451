"""Opening a SQLite database of the lake: durable, shared by processes, brought up to date. What it holds is not."""

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from data.errors import LakeDamaged

_TICK_NANOSECONDS: Final = 50_000_000
"""Two commits so close to each other may leave the same time behind: kernels tick every 1 to 10 ms."""


def open_database(path: Path, migrations: Sequence[str]) -> sqlite3.Connection:
    """Open or create a database in write-ahead mode with full syncing, in the version `migrations` lead to.

    Entry n of `migrations` takes it from version n to n + 1; a statement ends with ; at the end of a line.
    Raises LakeDamaged when it cannot be used, or when a newer program wrote it.
    """
    db = None
    try:
        db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise LakeDamaged(f"{path} cannot keep a write-ahead log here; put the lake on a local disk.")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")  # what is deleted leaves the file, too: visits may wait here
        _migrate(db, path, migrations)
    except (sqlite3.DatabaseError, LakeDamaged) as error:
        if db:
            db.close()
        if isinstance(error, LakeDamaged):
            raise
        raise LakeDamaged(f"{path} cannot be used: {error}.") from error
    return db


class Commits:
    """Tells whether anybody, in any process, may have committed to a database since a state was seen.

    Every commit writes to the write-ahead log, whose status is had at a fifth of the cost of a query. Looking at its
    index instead would be wrong: to close a second handle of that file ends the locks that SQLite holds on it.
    """

    def __init__(self, path: Path) -> None:
        self._log = f"{path}-wal"

    def state(self) -> tuple[int, int, int] | None:
        """What differs after every commit; None where that cannot be told now."""
        try:
            stat = os.stat(self._log)  # noqa: PTH116  # a Path takes three times as long
        except FileNotFoundError:
            return 0, 0, 0  # nobody has committed since everybody closed it
        is_quiet = time.time_ns() - stat.st_mtime_ns > _TICK_NANOSECONDS
        return (stat.st_mtime_ns, stat.st_size, stat.st_ino) if is_quiet else None


def _migrate(db: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    if db.execute("PRAGMA user_version").fetchone() == (len(migrations),):
        return
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise LakeDamaged(
            f"{path} has version {version}, this program knows up to {len(migrations)}; upgrade the program."
        )
    for script in migrations[version:]:
        for statement in script.split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(migrations)}")
    db.execute("COMMIT")

"""Opening a SQLite database of the lake: durable, shared by processes, brought up to date. What it holds is not."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from data.errors import LakeDamaged


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

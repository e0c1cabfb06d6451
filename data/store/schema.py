"""Opens and migrates the SQLite databases of a lake, and declares the tables of the manifest."""

import atexit
import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from data.errors import LakeDamaged, NewerVersion
from data.store.files import move_durably, sync

_LOG: Final = logging.getLogger(__name__)
_MAX_WAIT_SECONDS: Final = 60.0
"""How long a database is waited for that another process writes."""


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
        first_at TEXT NOT NULL,       -- the time of its first visit, and of its last; '' without any
        last_at TEXT NOT NULL,
        UNIQUE (organization, domain, sha256)
    );
    CREATE TABLE received (           -- when visits were reported: without a pause of hours between first and last
        organization TEXT NOT NULL,
        first_at TEXT NOT NULL,
        last_at TEXT NOT NULL
    );
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        organization TEXT NOT NULL,
        day TEXT NOT NULL,
        path TEXT NOT NULL UNIQUE,    -- relative to the lake
        visits INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        changed_ns INTEGER NOT NULL,  -- st_ctime_ns when the bytes were last found to be what was written
        inode INTEGER NOT NULL,
        checked_at TEXT NOT NULL,     -- and when that was
        unfinished_of INTEGER REFERENCES batches (id),  -- holds the visit of that log's last line, without a newline
        schema_version INTEGER NOT NULL,  -- of its visits
        behaviour_version INTEGER NOT NULL,  -- of what they were judged by, with all visits of their day; 0: not yet
        deletable_at TEXT             -- null: live; otherwise when nobody can be reading it any more
    );
    CREATE INDEX live_files ON files (organization, day) WHERE deletable_at IS NULL;
    CREATE TABLE pending (            -- acknowledged, not yet in a Parquet file
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never twice: whoever moved it would take another for it
        organization TEXT NOT NULL,
        visits INTEGER NOT NULL,
        received_at TEXT NOT NULL,
        body BLOB NOT NULL,           -- packed column by column, as packing.py says
        zone TEXT NOT NULL            -- in which the visits are dated
    );
    CREATE TABLE zones (              -- of organizations that do not use UTC
        organization TEXT PRIMARY KEY,
        zone TEXT NOT NULL            -- a name of the tz database
    ) WITHOUT ROWID;
    CREATE TABLE epochs (
        organization TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL        -- how often what had landed was changed afterwards
    ) WITHOUT ROWID;
    CREATE TABLE behaviour_off (      -- answers of these organizations take visits as they landed
        organization TEXT PRIMARY KEY
    ) WITHOUT ROWID;
    CREATE TABLE erasures (           -- which could be undone by importing a log again
        organization TEXT NOT NULL,
        erased_at TEXT NOT NULL,
        short_code TEXT,              -- null: visits of any link, of one visitor
        first_day TEXT NOT NULL,      -- of the days that were searched
        last_day TEXT NOT NULL
    );
    CREATE TABLE rollups (
        id INTEGER PRIMARY KEY,
        organization TEXT NOT NULL,
        month TEXT NOT NULL,          -- its first day
        version TEXT NOT NULL,        -- of how it was counted
        path TEXT NOT NULL UNIQUE,    -- relative to the lake
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        changed_ns INTEGER NOT NULL,  -- as of a visit file, like the three below
        inode INTEGER NOT NULL,
        checked_at TEXT NOT NULL,
        deletable_at TEXT,
        sources TEXT NOT NULL,        -- the paths of the visit files of each day, as JSON
        days_without_domains TEXT NOT NULL  -- days that have no rows for single domains, as JSON
    );
    CREATE UNIQUE INDEX live_rollups ON rollups (organization, month) WHERE deletable_at IS NULL;
    CREATE TABLE links (              -- the Parquet files with the links of organizations
        organization TEXT NOT NULL,
        path TEXT PRIMARY KEY,        -- relative to the lake
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        changed_ns INTEGER NOT NULL,  -- as of a visit file, like the three below
        inode INTEGER NOT NULL,
        checked_at TEXT NOT NULL,
        deletable_at TEXT
    );
    CREATE UNIQUE INDEX live_links ON links (organization) WHERE deletable_at IS NULL;
    CREATE VIEW registered_files AS
        SELECT path, deletable_at FROM files UNION ALL SELECT path, deletable_at FROM rollups
        UNION ALL SELECT path, deletable_at FROM links;
    CREATE TABLE copies (             -- where visits were published: erasures must reach them
        target TEXT NOT NULL,         -- a folder or s3://bucket/prefix
        organization TEXT NOT NULL,
        version INTEGER NOT NULL,     -- of the log of its visits, -1 before the first
        published_at TEXT,            -- when it was last what the manifest says
        erasures INTEGER NOT NULL,    -- how often visits were erased since it was begun
        followed INTEGER NOT NULL,    -- and how many of these it follows
        due_since TEXT,               -- when the first one was that it does not follow; null: it follows all
        PRIMARY KEY (target, organization)
    ) WITHOUT ROWID;
    CREATE TABLE marks (              -- one row: the random name of this lake where it is published
        id INTEGER PRIMARY KEY CHECK (id = 1),
        mark TEXT NOT NULL
    );
    CREATE TABLE last_runs (          -- when tasks that depend on the clock were last run
        task TEXT PRIMARY KEY,
        at TEXT NOT NULL
    );
    CREATE TABLE generation (         -- one row
        number INTEGER NOT NULL,      -- of changes that were committed
        files INTEGER NOT NULL,       -- how many rows the table has, and batches likewise
        batches INTEGER NOT NULL
    );
    INSERT INTO generation VALUES (0, 0, 0);
    CREATE TRIGGER file_added AFTER INSERT ON files BEGIN UPDATE generation SET files = files + 1; END;
    CREATE TRIGGER file_removed AFTER DELETE ON files BEGIN UPDATE generation SET files = files - 1; END;
    CREATE TRIGGER batch_added AFTER INSERT ON batches BEGIN UPDATE generation SET batches = batches + 1; END;
    CREATE TRIGGER batch_removed AFTER DELETE ON batches BEGIN UPDATE generation SET batches = batches - 1; END;
    """,
)
"""The migrations of the manifest: entry n migrates version n to n + 1. Never change an entry, only append.

The tables are used in manifest.py, generation.py, pending.py, coverage.py, zones.py, rollups.py, link_files.py,
erasures.py and maintenance/retention.py.
"""


class _Database(sqlite3.Connection):
    """A connection that can be referred to weakly."""


_OPEN: Final = weakref.WeakSet[_Database]()


@atexit.register
def _close_all() -> None:
    """Close every database when the program ends: the last one to do so empties the write-ahead log and removes it."""
    for db in list(_OPEN):
        db.close()


def open_database(path: Path, migrations: Sequence[str], refuse_new: str = "") -> sqlite3.Connection:
    """Open or create a database in write-ahead mode with full syncing, and apply missing migrations.

    With `refuse_new`, the end of a sentence, a missing or empty database (version 0) is not created but damage.
    The sentence says what to do, also about a file that is no database.

    Entry n of `migrations` migrates version n to n + 1; each statement ends with ; at the end of a line.
    Before a migration, the database is copied to <name>.before-<version> in the same folder.
    Raises LakeDamaged when it cannot be used, or when a newer version of this program wrote it.
    """
    db = None
    try:
        if refuse_new and not (path.exists() and path.stat().st_size):
            raise LakeDamaged(f"{path} is {'empty' if path.exists() else 'missing'}, {refuse_new}")
        db = sqlite3.connect(
            path, timeout=_MAX_WAIT_SECONDS, isolation_level=None, check_same_thread=False, factory=_Database
        )
        _OPEN.add(db)
        if _use_write_ahead_log(db) != "wal":
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


def disk_problem(error: Exception) -> str:
    """What to do about an error of SQLite that comes from the disk; "" for any other."""
    if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"the disk is full or fails ({error}); make room on it, or look at it, then try again"
    return ""


def _use_write_ahead_log(db: sqlite3.Connection) -> str:
    """Switch a database to write-ahead mode; return its mode.

    Unlike any other statement, this one fails at once while another process writes: both may create the database.
    """
    ends_at = time.monotonic() + _MAX_WAIT_SECONDS
    while True:
        try:
            return str(*db.execute("PRAGMA journal_mode = WAL").fetchone())
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise
        time.sleep(0.01)


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
        _LOG.warning("%s is being upgraded; a copy of the old version is in %s.", path, _back_up(path, version))
    for script in migrations[version:]:
        for statement in script.split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(migrations)}")
    db.execute("COMMIT")


def _back_up(path: Path, version: int) -> Path:
    """Copy a database before its migration; return the copy's path. The caller holds its write lock."""
    target = path.with_name(f"{path.name}.before-{version}")
    staged = target.with_name(f"{target.name}.partial")
    staged.unlink(missing_ok=True)  # left over from a killed program
    os.close(os.open(staged, os.O_CREAT | os.O_EXCL, 0o600))  # readable by its owner only
    with closing(sqlite3.connect(path, timeout=60)) as original, closing(sqlite3.connect(staged)) as copy:
        original.backup(copy)
    sync(staged)
    move_durably(staged, target)
    return target

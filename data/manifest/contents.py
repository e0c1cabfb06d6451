"""Reads the contents of an old manifest and writes a new manifest, for rebuilds."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import astuple

from data.errors import LakeDamaged, NewerVersion
from data.manifest.coverage import note_received
from data.manifest.database import Database
from data.manifest.files import READERS_GRACE, LandedFile, insert_files
from data.manifest.kinds import VISIT_FILES, expire
from data.manifest.links import LiveLinks, insert_links
from data.manifest.logs import Batch

_NO_DAMAGE: Final = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY,
})  # fmt: skip
"""SQLite's primary result codes that do not indicate damage."""
_OBJECTS: Final = "SELECT objects.organization, bucket, key, etag, batches.organization, sha256 FROM objects \
JOIN batches ON batches.id = batch"


_BATCH: Final = "INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_OBJECT: Final = "INSERT OR IGNORE INTO objects (organization, bucket, key, etag, batch) \
SELECT ?, ?, ?, ?, id FROM batches WHERE organization = ? AND sha256 = ?"

OldManifest: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]
"""The rows of the tables that a rebuild keeps, by table name. Each row of `files` has only the path, the SHA-256, and
a value that is true if the file is live."""


def read_old_manifest(path: Path) -> OldManifest | None:
    """Read the tables of a manifest; return None if it is missing or damaged.

    Raises NewerVersion if a newer program wrote it, and LakeDamaged if it cannot be read now but may be intact.
    """
    try:
        with closing(Database(path, "and is not created")) as database:
            ((result, *_), *_) = database.rows("PRAGMA integrity_check")
            if result != "ok":
                return None
            return {
                "batches": database.rows("SELECT * FROM batches"),
                "files": database.rows("SELECT path, sha256, deletable_at IS NULL FROM files"),
                "epochs": database.rows("SELECT * FROM epochs"),
                "last_runs": database.rows("SELECT * FROM last_runs"),
                "erasures": database.rows("SELECT * FROM erasures"),
                "zones": database.rows("SELECT * FROM zones"),
                "received": database.rows("SELECT * FROM received"),
                "arrivals": database.rows("SELECT * FROM arrivals"),
                "pending": database.rows("SELECT * FROM pending ORDER BY id"),
                "copies": database.rows("SELECT * FROM copies"),
                "marks": database.rows("SELECT * FROM marks"),
                "behaviour_off": database.rows("SELECT * FROM behaviour_off"),
                "files_aside": database.rows("SELECT * FROM files_aside"),
                "exclusions": database.rows("SELECT * FROM exclusions"),
                "objects": database.rows(_OBJECTS),
                "generation": database.rows("SELECT number FROM generation"),
            }
    except NewerVersion:
        raise
    except (LakeDamaged, sqlite3.DatabaseError) as error:
        cause = error.__cause__ if isinstance(error, LakeDamaged) else error
        if isinstance(cause, OSError) or (getattr(cause, "sqlite_errorcode", 0) & 0xFF) in _NO_DAMAGE:
            raise LakeDamaged(
                f"{path} cannot be read now ({error.__cause__ or error}), but may be intact; fix the cause or "
                "move the file away, then rebuild again."
            ) from error
        return None


@dataclass(frozen=True)
class NewContents:
    """The contents that a rebuild found in the files or kept from the old manifest."""

    old: OldManifest
    generation: int
    batches: Sequence[tuple[str, Batch]]  # with their organizations
    files: Sequence[LandedFile]  # live files
    replaced: Sequence[LandedFile]  # dead files
    zones: Sequence[tuple[str, str]]
    pending: Sequence[tuple[Any, ...]]  # rows that are not in any file
    received: Sequence[tuple[str, str, str]]
    last_pending: int  # the highest id that any pending row has had
    links: Mapping[str, LiveLinks]


class Totals(NamedTuple):
    """Counts of a manifest's live files with visits, the visits in them, and pending visits."""

    files: int
    visits: int
    pending: int


def write_manifest(path: Path, contents: NewContents) -> Totals:
    """Create a manifest at `path` as a single file, without a write-ahead log; return its totals."""
    with closing(Database(path)) as database:
        with database.transaction() as db:
            _insert(db, contents)
        ((files, visits),) = database.rows(
            "SELECT count(*), coalesce(sum(visits), 0) FROM files WHERE deletable_at IS NULL AND visits > 0"
        )
        ((pending,),) = database.rows("SELECT coalesce(sum(visits), 0) FROM pending")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return Totals(files, visits, pending)


def _insert(db: sqlite3.Connection, contents: NewContents) -> None:
    old, objects = contents.old, [*contents.old["objects"]]
    for organization, batch in contents.batches:
        key, *columns, version = astuple(batch)
        db.execute(_BATCH, [key, organization, *columns])
        objects += [(organization, *version, organization, batch.sha256)] if version else []
    db.executemany(_BATCH, old["batches"])
    db.executemany(_OBJECT, objects)
    insert_files(db, [*contents.files, *contents.replaced])
    deletable_at = datetime.now(UTC) + READERS_GRACE
    for file in contents.replaced:
        expire(db, VISIT_FILES, file.path, deletable_at)
    organizations = {file.organization for file in [*contents.files, *contents.replaced]}
    epochs = dict.fromkeys(organizations, 0) | dict(old["epochs"])
    db.executemany("INSERT INTO epochs VALUES (?, ?)", [(name, epoch + 1) for name, epoch in epochs.items()])
    db.executemany("INSERT INTO zones VALUES (?, ?)", contents.zones)
    db.executemany("INSERT INTO last_runs VALUES (?, ?)", old["last_runs"])
    db.executemany("INSERT INTO erasures VALUES (?, ?, ?, ?, ?)", old["erasures"])
    db.executemany("INSERT INTO copies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", old["copies"])
    db.executemany("INSERT INTO marks VALUES (?, ?)", old["marks"])
    db.executemany("INSERT INTO arrivals VALUES (?, ?, ?, ?, ?)", old["arrivals"])
    db.executemany("INSERT INTO behaviour_off VALUES (?)", old["behaviour_off"])
    db.executemany("INSERT INTO files_aside VALUES (?)", old["files_aside"])
    db.executemany("INSERT INTO exclusions VALUES (?, ?, ?, ?, ?)", old["exclusions"])
    db.executemany("INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?)", contents.pending)
    for row in contents.received:
        note_received(db, *row)
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'pending'")
    db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('pending', ?)", [contents.last_pending])
    db.execute("UPDATE generation SET number = ?", [contents.generation])
    for organization, links in contents.links.items():
        insert_links(db, organization, links, datetime.now(UTC))

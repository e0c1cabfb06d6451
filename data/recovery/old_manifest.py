"""What is left of a manifest that a rebuild replaces."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias

from data.errors import LakeDamaged, NewerVersion
from data.manifest.manifest import Manifest

_NO_DAMAGE: Final = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY,
})  # fmt: skip
"""SQLite's primary result codes that say nothing about the content of a database."""
_OBJECTS: Final = "SELECT objects.organization, bucket, key, etag, batches.organization, sha256 FROM objects \
JOIN batches ON batches.id = batch"


OldManifest: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]
"""The rows of its tables by name; of `files`, the path, the SHA-256 and whether it is live."""


def read_old_manifest(path: Path) -> OldManifest | None:
    """The tables of a manifest; None when it is missing or damaged.

    Raises NewerVersion for one of a newer program, LakeDamaged for one that cannot be read now but may be intact.
    """
    try:
        with closing(Manifest(path, "and is not created")) as manifest:
            ((result, *_), *_) = manifest.rows("PRAGMA integrity_check")
            if result != "ok":
                return None
            return {
                "batches": manifest.rows("SELECT * FROM batches"),
                "files": manifest.rows("SELECT path, sha256, deletable_at IS NULL FROM files"),
                "epochs": manifest.rows("SELECT * FROM epochs"),
                "last_runs": manifest.rows("SELECT * FROM last_runs"),
                "erasures": manifest.rows("SELECT * FROM erasures"),
                "zones": manifest.rows("SELECT * FROM zones"),
                "received": manifest.rows("SELECT * FROM received"),
                "arrivals": manifest.rows("SELECT * FROM arrivals"),
                "pending": manifest.rows("SELECT * FROM pending ORDER BY id"),
                "copies": manifest.rows("SELECT * FROM copies"),
                "marks": manifest.rows("SELECT * FROM marks"),
                "behaviour_off": manifest.rows("SELECT * FROM behaviour_off"),
                "objects": manifest.rows(_OBJECTS),
                "generation": manifest.rows("SELECT number FROM generation"),
            }
    except NewerVersion:
        raise
    except (LakeDamaged, sqlite3.DatabaseError) as error:
        cause = error.__cause__ if isinstance(error, LakeDamaged) else error
        if isinstance(cause, OSError) or (getattr(cause, "sqlite_errorcode", 0) & 0xFF) in _NO_DAMAGE:
            raise LakeDamaged(
                f"{path} cannot be read now ({error.__cause__ or error}), but may be intact; repair that, or move it "
                "away, and rebuild again."
            ) from error
        return None

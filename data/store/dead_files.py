"""Dead files in the manifest: from when they may be deleted, and their removal. Callers have begun a transaction."""

import sqlite3
from collections.abc import Iterable
from datetime import date, datetime

from data.store.clock import format_time


def expire_unfinished(db: sqlite3.Connection, batch: int | None, deletable_at: datetime) -> None:
    """Let the visit of the unfinished last line of a batch die, because that line was read again."""
    db.execute(
        "UPDATE files SET deletable_at = ? WHERE unfinished_of = ? AND deletable_at IS NULL",
        [format_time(deletable_at), batch],
    )


def expire_rollups(db: sqlite3.Connection, organization: str, days: Iterable[date], deletable_at: datetime) -> None:
    """Let the rollups die that were counted from files of these days, which were replaced."""
    months = sorted({day.replace(day=1).isoformat() for day in days})
    db.executemany(
        "UPDATE rollups SET deletable_at = ? WHERE organization = ? AND month = ? AND deletable_at IS NULL",
        [(format_time(deletable_at), organization, month) for month in months],
    )


def expire_now(db: sqlite3.Connection, organization: str, before: date | None, deletable_at: datetime) -> list[str]:
    """As Manifest.expire_now."""
    by, first = format_time(deletable_at), before and before.isoformat()
    parameters = {"by": by, "organization": organization, "before": first}
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


def purge(db: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Remove deleted dead files."""
    for path in paths:
        db.execute("DELETE FROM files WHERE path = ? AND deletable_at IS NOT NULL", [path])
        db.execute("DELETE FROM rollups WHERE path = ? AND deletable_at IS NOT NULL", [path])
        db.execute("DELETE FROM links WHERE path = ? AND deletable_at IS NOT NULL", [path])

"""Dead files in the manifest: from when they may be deleted, and their removal once they are."""

from collections.abc import Iterable
from datetime import date, datetime

from data.store.clock import format_time
from data.store.manifest import Manifest


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

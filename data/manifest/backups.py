"""Reduces a copy of a manifest to the contents of a backup. The caller must close the connection to the copy."""

import sqlite3
from itertools import starmap
from typing import NamedTuple

from data.disk.files import RegisteredFile
from data.manifest.kinds import KINDS


class BackupResult(NamedTuple):
    """The number of visit files, visits and pending visits in a backup, and the size of the visit files in bytes."""

    files: int
    visits: int
    pending: int  # visits in the manifest, not yet in a file
    size: int


def files_to_back_up(copy: sqlite3.Connection) -> list[RegisteredFile]:
    """Return the live files of the kinds that cannot be recomputed, sorted by path."""
    rows = [
        row
        for kind in KINDS
        if kind.is_backed_up
        for row in kind.execute(
            "SELECT path, bytes, sha256, changed_ns, inode FROM of_kind WHERE deletable_at IS NULL", copy
        )
    ]
    return sorted(starmap(RegisteredFile, rows))


def forget_other_files(copy: sqlite3.Connection) -> BackupResult:
    """Delete from a copy of the manifest the rows of files that are not backed up; return what the backup contains."""
    for kind in KINDS:
        kind.execute("DELETE FROM of_kind WHERE deletable_at IS NOT NULL OR NOT ?", copy, [kind.is_backed_up])
    copy.execute("VACUUM")
    ((files, visits, size),) = copy.execute("SELECT count(*), total(visits), total(bytes) FROM files")
    ((pending,),) = copy.execute("SELECT coalesce(sum(visits), 0) FROM pending")
    return BackupResult(files, int(visits), pending, int(size))

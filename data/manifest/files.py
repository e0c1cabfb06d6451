"""The visit files registered in the manifest; checks and deletion also cover the files of rollups and links."""

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any, Final, NamedTuple

from data.disk.files import RegisteredFile
from data.manifest.clock import TOLERANCE, format_time
from data.manifest.database import Database
from data.manifest.kinds import KINDS, VISIT_FILES, insert, live_of_kind
from data.visits import SCHEMA_VERSION

Move = Callable[[], "list[LandedFile]"]
"""Moves staged files to their final paths and returns them; called inside the transaction that makes them live."""

READERS_GRACE: Final = timedelta(hours=24)
"""How long a dead file stays on disk for readers that may still use it, such as queries or an analyst's shell."""


@dataclass(frozen=True)
class LandedFile:
    """A registered Parquet file for one organization and day."""

    organization: str
    day: date
    path: str
    visits: int
    size: int
    sha256: str
    changed_ns: int  # st_ctime_ns, which unlike st_mtime_ns cannot be set back after a change
    inode: int
    checked_at: datetime  # when its bytes were last verified
    unfinished_of: int | None = None  # the batch of the unfinished last line (without a newline) that it contains
    schema_version: int = SCHEMA_VERSION  # the schema version of its visits
    behaviour_version: int = 0  # the BEHAVIOUR_VERSION by which its visits were judged; 0: not judged
    facts: int = 0  # the bits of REQUEST_FACTS that at least one of its visits has, and NETWORKS if it applies


_FILE_COLUMNS: Final = (
    "organization, day, path, visits, bytes, sha256, changed_ns, inode, checked_at, unfinished_of, schema_version, "
    "behaviour_version, facts"
)
_SELECT_LIVE: Final = f"SELECT {_FILE_COLUMNS} FROM files WHERE deletable_at IS NULL AND "
_DEAD: Final = "SELECT day, path, sha256 FROM files WHERE organization = ? AND deletable_at IS NOT NULL"


class DeadFile(NamedTuple):
    """A visit file that was replaced or removed, but is still on disk."""

    day: str
    path: str
    sha256: str


class Files:
    """The visit files."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def live(self, organization: str, start: date = date.min, end: date = date.max) -> list[LandedFile]:
        """Return one organization's live files with visits from `start` to `end` (inclusive), sorted by path."""
        days = [organization, start.isoformat(), end.isoformat()]
        rows = self._database.rows(
            _SELECT_LIVE + "organization = ? AND day BETWEEN ? AND ? AND visits > 0 ORDER BY path", days
        )
        return [_file_of(row) for row in rows]

    def has_visits(self, organization: str, start: date, end: date) -> bool:
        """Return whether an organization has visits in files from `start` to `end` (inclusive)."""
        rows = self._database.rows(
            "SELECT 1 FROM files "
            "WHERE organization = ? AND day BETWEEN ? AND ? AND deletable_at IS NULL AND visits > 0 LIMIT 1",
            [organization, start.isoformat(), end.isoformat()],
        )
        return bool(rows)

    def removal_records(self, organization: str) -> list[LandedFile]:
        """Return one organization's live files without visits; their footers list removed files."""
        rows = self._database.rows(_SELECT_LIVE + "organization = ? AND visits = 0", [organization])
        return [_file_of(row) for row in rows]

    def with_unfinished_line(self, batch: int) -> list[LandedFile]:
        """Return the live files that contain the visit from the unfinished last line of a batch."""
        rows = self._database.rows(_SELECT_LIVE + "unfinished_of = ? AND visits > 0", [batch])
        return [_file_of(row) for row in rows]

    def due_for_check(self, before: datetime) -> list[RegisteredFile]:
        """Return live files that cannot be recomputed and were last verified before a given time."""
        kinds = [kind for kind in KINDS if kind.is_backed_up]
        return [file for kind in kinds for file in live_of_kind(self._database, kind, before=before)]

    def oldest(self, most: int, organization: str = "") -> list[tuple[str, str]]:
        """Return the organization and path of up to `most` live files with visits, for one organization or all, oldest
        days first.
        """
        return [
            (owner, path)
            for owner, path in self._database.rows(
                "SELECT organization, path FROM files "
                "WHERE deletable_at IS NULL AND visits > 0 AND ?1 IN ('', organization) ORDER BY day LIMIT ?2",
                [organization, most],
            )
        ]

    def first_and_last_days(self, organization: str = "") -> list[tuple[str, str]]:
        """Return the organization and path of each live file from the first and last day with visits, for one
        organization or all.
        """
        return [(owner, path) for owner, path in self._database.rows(_ENDS, [organization])]

    def span(self, organization: str) -> tuple[date, date] | None:
        """Return an organization's first and last day with visits; None if it has none."""
        ((first, last),) = self._database.rows(
            "SELECT min(day), max(day) FROM files WHERE organization = ? AND deletable_at IS NULL AND visits > 0",
            [organization],
        )
        return (date.fromisoformat(first), date.fromisoformat(last)) if first else None

    def facts_by_day(self, organization: str, start: date, end: date) -> dict[date, int]:
        """Return the request facts of each day with visits from `start` to `end` (inclusive), ORed over its visits."""
        rows = self._database.rows(
            "SELECT DISTINCT day, facts FROM files "
            "WHERE organization = ? AND day BETWEEN ? AND ? AND deletable_at IS NULL AND visits > 0",
            [organization, start.isoformat(), end.isoformat()],
        )
        found = dict[date, int]()
        for text, facts in rows:
            day = date.fromisoformat(text)
            found[day] = found.get(day, 0) | facts
        return found

    def newest_day(self, until: date) -> date | None:
        """Return the newest day up to `until` for which any organization has a live file; None if there is none."""
        ((day,),) = self._database.rows(
            "SELECT max(day) FROM files WHERE deletable_at IS NULL AND day <= ?", [until.isoformat()]
        )
        return date.fromisoformat(day) if day else None

    def days_to_merge(
        self, now: datetime, most_open: int, organization: str | None, version: int
    ) -> list[tuple[str, date]]:
        """Return each day to merge or judge, with its organization; with `organization`, only that organization's days.

        A past day is included if it has several files, or a file not judged by `version` or a later version. A day that
        is not over is included if it has more than `most_open` files. Days with files that were never judged come
        first; otherwise, days with more files come first.
        """
        rows = self._database.rows(
            "SELECT organization, day FROM files LEFT JOIN zones USING (organization) "
            "WHERE deletable_at IS NULL AND visits > 0 AND organization = coalesce($organization, organization) "
            "GROUP BY organization, day "
            "HAVING count(*) > iif(day < today_in(zone, $now), 1, $most) "
            "OR day < today_in(zone, $now) AND min(behaviour_version) < $version "
            "ORDER BY min(behaviour_version) > 0, count(*) DESC, organization, day",
            {"now": now.isoformat(), "most": most_open, "organization": organization, "version": version},
        )
        return [(owner, date.fromisoformat(day)) for owner, day in rows]

    def paths(self) -> set[str]:
        """Return the paths of all visit files, live or dead."""
        return {path for (path,) in self._database.rows("SELECT path FROM files")}

    def dead(self, organization: str, *, with_unfinished: bool = True) -> list[DeadFile]:
        """Return an organization's dead files, with or without files that contain the visit from an unfinished line."""
        rows = self._database.rows(_DEAD if with_unfinished else f"{_DEAD} AND unfinished_of IS NULL", [organization])
        return [DeadFile(*row) for row in rows]

    def live_of_any_kind(self) -> list[str]:
        """Return the paths of all live files (of visits, rollups and links), sorted."""
        rows = self._database.rows("SELECT path FROM registered_files WHERE deletable_at IS NULL ORDER BY path")
        return [path for (path,) in rows]

    def is_live(self, path: str) -> bool:
        """Return whether a file (of visits, rollups or links) is live now."""
        return bool(
            self._database.rows("SELECT 1 FROM registered_files WHERE path = ? AND deletable_at IS NULL", [path])
        )

    def is_registered(self, path: str) -> bool:
        """Return whether a file (of visits, rollups or links) is registered, live or dead."""
        return bool(self._database.rows("SELECT 1 FROM registered_files WHERE path = ?", [path]))

    def refresh_stat(self, path: str, changed_ns: int, inode: int, now: datetime) -> None:
        """Record the change time and inode of a file of any kind after hashing its bytes.

        If `changed_ns` is 0, the next check hashes the file again.
        """
        with self._database.transaction() as db:
            row = [changed_ns, inode, format_time(now), path]
            for kind in KINDS:
                kind.execute("UPDATE of_kind SET changed_ns = ?, inode = ?, checked_at = ? WHERE path = ?", db, row)

    def deletable(self, now: datetime) -> list[str]:
        """Return the paths of deletable dead files: their grace period has ended, or would end impossibly late."""
        bounds = [format_time(now), format_time(now + READERS_GRACE + TOLERANCE)]
        rows = self._database.rows(
            "SELECT path FROM registered_files WHERE deletable_at <= ? OR deletable_at > ?", bounds
        )
        return [path for (path,) in rows]

    def expire_now(self, organization: str, before: date | None, deletable_at: datetime) -> list[str]:
        """Make an organization's dead visit files and rollups deletable by `deletable_at` at the latest; return their
        paths.

        With `before`, this affects only files for days before that date.
        """
        parameters = [format_time(deletable_at), organization, before and before.isoformat()]
        with self._database.transaction() as db:
            rows = [
                row
                for kind in KINDS
                if kind.holds_visits
                for row in kind.execute(
                    "UPDATE of_kind SET deletable_at = min(deletable_at, ?1) WHERE organization = ?2 "
                    "AND deletable_at IS NOT NULL AND (?3 IS NULL OR day_of_kind < ?3) RETURNING path",
                    db,
                    parameters,
                )
            ]
        return sorted(path for (path,) in rows)

    def purge(self, paths: Iterable[str]) -> None:
        """Unregister dead files of any kind after they have been deleted."""
        with self._database.transaction() as db:
            for path, kind in product(paths, KINDS):
                kind.execute("DELETE FROM of_kind WHERE path = ? AND deletable_at IS NOT NULL", db, [path])


_ENDS: Final = """
SELECT organization, path FROM files JOIN (
    SELECT organization, min(day) AS first_day, max(day) AS last_day FROM files
    WHERE deletable_at IS NULL AND visits > 0 AND ? IN ('', organization) GROUP BY organization
) USING (organization) WHERE deletable_at IS NULL AND visits > 0 AND day IN (first_day, last_day)
"""


def insert_files(db: sqlite3.Connection, files: Iterable[LandedFile]) -> None:
    """Register live files. The caller must have begun a transaction."""
    insert(
        db,
        VISIT_FILES,
        [
            (file.organization, file.path, file.size, file.sha256, file.changed_ns, file.inode,
             format_time(file.checked_at), file.day.isoformat(), file.visits, file.unfinished_of, file.schema_version,
             file.behaviour_version, file.facts)
            for file in files
        ],
    )  # fmt: skip


def _file_of(row: tuple[Any, ...]) -> LandedFile:
    organization, day, path, visits, size, sha256, changed_ns, inode, checked_at, *rest = row
    day, checked = date.fromisoformat(day), datetime.fromisoformat(checked_at)
    return LandedFile(organization, day, path, visits, size, sha256, changed_ns, inode, checked, *rest)

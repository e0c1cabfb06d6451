"""Visits of one organization that are erased: from answers at once, from the disk when no query reads them any more.

What goes by age alone, of every organization, is retention.py's.
"""

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from data.errors import TrafficError
from data.maintenance.compaction import Compactor
from data.maintenance.rewriting import Partition, partitions, readable, rewriting_engine
from data.sql import read_sql
from data.store.lake import Lake
from data.store.landing import Staged, discard, new_path, publisher, write_visits
from data.store.manifest import LandedFile, Replacement
from data.store.pending import flush_all

GRACE: Final = timedelta(seconds=15)
"""How long files stay once their visits are erased: longer than a query may run (10 s), so that none under way fails.

An analyst's shell that was given their names loses them then: erased is erased.
"""

Progress = Callable[[int, int], None]
"""Called with the partitions done so far and the partitions to do."""


class FilesInUse(TrafficError):
    """Somebody reads what is to be deleted, and does not end."""


class Criteria(NamedTuple):
    """Which visits are erased: those that meet every criterion given, and without any all of them."""

    short_code: str | None = None  # with case
    domain: str | None = None  # without case
    visitor: int | None = None
    before: date | None = None  # visits of the UTC days before it

    @property
    def selects_whole_days(self) -> bool:
        """Whether they take days as a whole, whatever their visits are."""
        return self.short_code is None and self.domain is None and self.visitor is None


@dataclass
class ErasureResult:
    """What was erased, or in a dry run what would be."""

    organization: str
    criteria: Criteria
    ended_at: datetime
    """When the last visit stopped counting."""
    visits: int = 0
    partitions: int = 0
    before: list[LandedFile] = field(default_factory=list)
    """The files that held them."""
    after: list[LandedFile] = field(default_factory=list)
    """The files that hold what else was in those, if anything was."""
    dead: list[str] = field(default_factory=list)
    """Every file that is to be deleted: those, and earlier ones that may hold the same visits."""


class Eraser:
    """Erases visits of one lake."""

    def __init__(self, lake: Lake, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._lake = lake
        self._now = now

    def run(
        self, organization: str, criteria: Criteria, dry_run: bool = False, progress: Progress | None = None
    ) -> ErasureResult:
        """Let visits count no longer, partition by partition; each changes as a whole or not at all.

        What is left of them on the disk is for `delete_files` and `truncate_wal`, once GRACE is over. Raises
        LakeDamaged for a damaged file that would have to be read; partitions done before that stay done.
        """
        if not dry_run:
            self._flush()
        erased = ErasureResult(organization, criteria, self._now())
        days = [partition for partition, _ in partitions(self._lake, organization)]
        work = [partition for partition in days if criteria.before is None or partition.day < criteria.before]
        with rewriting_engine(self._lake) as engine:
            for number, partition in enumerate(work, 1):
                self._run(engine, partition, dry_run, erased)
                if progress:
                    progress(number, len(work))
        if not dry_run:
            erased.ended_at = self._now()
            erased.dead = self._lake.manifest.expire_now(organization, criteria.before, erased.ended_at + GRACE)
        return erased

    def _flush(self) -> None:
        """Give every visit that waits a file; those that a server takes meanwhile get theirs from it."""
        rows = self._lake.manifest.rows
        with self._lake.write_lock():
            ((latest,),) = rows("SELECT max(received_at) FROM pending")
            while rows("SELECT 1 FROM pending WHERE received_at <= ? LIMIT 1", [latest]):
                flush_all(self._lake)

    def _run(
        self, engine: duckdb.DuckDBPyConnection, partition: Partition, dry_run: bool, erased: ErasureResult
    ) -> None:
        """Erase in one partition while nothing else lands in the lake."""
        files: list[LandedFile] = []
        staged: list[Staged] = []
        try:
            with self._lake.write_lock(), self._lake.rewrite_lock():
                for file in self._lake.manifest.live_files(partition.organization, partition.day, partition.day):
                    count = self._count_erased(engine, file, erased.criteria)
                    if count:
                        files.append(file)
                        erased.visits += count
                    if 0 < count < file.visits and not dry_run:
                        staged.append(Staged(new_path(self._lake), *partition, file.visits - count, file.unfinished_of))
                        self._write_remaining(engine, file, staged[-1].path)
                if files and not dry_run:
                    erased.after += self._replace_files(files, staged)
        finally:
            discard(self._lake, staged)
        erased.before += files
        erased.partitions += bool(files)

    def _count_erased(self, engine: duckdb.DuckDBPyConnection, file: LandedFile, criteria: Criteria) -> int:
        """How many visits of a file are erased; a file that goes as a whole is not read, and may be damaged."""
        if criteria.selects_whole_days:
            return file.visits
        wanted = {name: getattr(criteria, name) for name in ("short_code", "domain", "visitor")}
        engine.execute(read_sql("data.maintenance", "sql/erased_rows"), {"files": readable(self._lake, file), **wanted})
        ((count,),) = engine.execute("SELECT count(*) FROM erased_rows").fetchall()
        return int(count)

    def _write_remaining(self, engine: duckdb.DuckDBPyConnection, file: LandedFile, path: Path) -> None:
        params = {"files": readable(self._lake, file)}
        remaining = engine.sql(read_sql("data.maintenance", "sql/remaining_visits"), params=params)
        write_visits(remaining.to_arrow_reader(100_000), path)

    def _replace_files(self, files: Sequence[LandedFile], staged: Sequence[Staged]) -> list[LandedFile]:
        """Put staged files in the place of live ones of one partition; how they were placed."""
        self._skip_rest(files, staged)
        published: list[LandedFile] = []
        publish = publisher(self._lake, staged)

        def publish_and_record() -> list[LandedFile]:
            published.extend(publish())
            return published

        replacement = Replacement(files, self._now() + GRACE, changes_answers=True)
        self._lake.manifest.replace_files(replacement, publish_and_record)
        return published

    def _skip_rest(self, files: Sequence[LandedFile], staged: Sequence[Staged]) -> None:
        """Let a log go on after its unfinished last line whose visit goes: with the line's end it would come back."""
        skipped_batches = {file.unfinished_of for file in files} - {file.unfinished_of for file in staged} - {None}
        if skipped_batches:
            with self._lake.manifest.transaction() as db:
                rows = [(batch,) for batch in skipped_batches]
                db.executemany("UPDATE batches SET whole_bytes = bytes WHERE id = ?", rows)


def delete_files(lake: Lake, dead: Collection[str], ended_at: datetime) -> None:
    """Delete dead files, once their grace is over, and what else in the folder may hold their visits.

    These are files that no manifest knows and files staged before `ended_at`. `truncate_wal` does the rest.
    """
    with lake.write_lock(), lake.rewrite_lock():  # nobody is at work on what lies there
        for path in dead:
            (lake.root / path).unlink(missing_ok=True)
        lake.manifest.purge(dead)
        Compactor(lake).sweep(unknown_visits=True)
        for staged in lake.staging.rglob("*"):
            with suppress(FileNotFoundError):
                if staged.is_file() and staged.stat().st_mtime < ended_at.timestamp():
                    staged.unlink()


def truncate_wal(lake: Lake) -> bool:
    """Leave nothing in the manifest's write-ahead log, where visits may have waited for their file.

    Whether that was possible: it is not while somebody reads in the manifest. Try it again then.
    """
    path = lake.root / "manifest.sqlite"
    with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as db:  # who writes waits meanwhile
        ((is_busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not is_busy

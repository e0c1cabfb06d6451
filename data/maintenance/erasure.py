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
from data.store.landing import Staged, discard, new_path, placing, write_visits
from data.store.manifest import Exchange, LandedFile
from data.store.pending import flush_all

GRACE: Final = timedelta(seconds=15)
"""How long files stay once their visits are erased: longer than a query may run (10 s), so that none under way fails.

An analyst's shell that was given their names loses them then: erased is erased.
"""

Progress = Callable[[int, int], None]
"""Called with the partitions done so far and the partitions to do."""


class StillRead(TrafficError):
    """Somebody reads what is to be deleted, and does not end."""


class Criteria(NamedTuple):
    """Which visits are erased: those that meet every criterion given, and without any all of them."""

    short_code: str | None = None  # with case
    domain: str | None = None  # without case
    visitor: int | None = None
    before: date | None = None  # visits of the UTC days before it

    @property
    def are_of_days(self) -> bool:
        """Whether they take days as a whole, whatever their visits are."""
        return self.short_code is None and self.domain is None and self.visitor is None


@dataclass
class Erased:
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
    ) -> Erased:
        """Let visits count no longer, partition by partition; each changes as a whole or not at all.

        What is left of them on the disk is for `delete` and `empty_log`, once GRACE is over. Raises LakeDamaged for
        a file that is not what was written and would have to be read; partitions done before that stay done.
        """
        if not dry_run:
            self._flush()
        erased = Erased(organization, criteria, self._now())
        days = [partition for partition, _ in partitions(self._lake, organization)]
        work = [partition for partition in days if criteria.before is None or partition.day < criteria.before]
        with rewriting_engine(self._lake) as engine:
            for number, partition in enumerate(work, 1):
                self._run(engine, partition, dry_run, erased)
                if progress:
                    progress(number, len(work))
        if not dry_run:
            erased.ended_at = self._now()
            erased.dead = self._lake.manifest.hasten(organization, criteria.before, erased.ended_at + GRACE)
        return erased

    def _flush(self) -> None:
        """Give every visit that waits a file; those that a server takes meanwhile get theirs from it."""
        rows = self._lake.manifest.rows
        with self._lake.writing():
            ((latest,),) = rows("SELECT max(received_at) FROM pending")
            while rows("SELECT 1 FROM pending WHERE received_at <= ? LIMIT 1", [latest]):
                flush_all(self._lake)

    def _run(self, engine: duckdb.DuckDBPyConnection, partition: Partition, dry_run: bool, erased: Erased) -> None:
        """Erase in one partition while nothing else lands in the lake."""
        files: list[LandedFile] = []
        staged: list[Staged] = []
        try:
            with self._lake.writing(), self._lake.rewriting():
                for file in self._lake.manifest.live_files(partition.organization, partition.day, partition.day):
                    gone = self._gone(engine, file, erased.criteria)
                    if gone:
                        files.append(file)
                        erased.visits += gone
                    if 0 < gone < file.visits and not dry_run:
                        staged.append(Staged(new_path(self._lake), *partition, file.visits - gone, file.unfinished_of))
                        self._write_remaining(engine, file, staged[-1].path)
                if files and not dry_run:
                    erased.after += self._exchange(files, staged)
        finally:
            discard(self._lake, staged)
        erased.before += files
        erased.partitions += bool(files)

    def _gone(self, engine: duckdb.DuckDBPyConnection, file: LandedFile, criteria: Criteria) -> int:
        """How many visits of a file are erased; a file that goes as a whole is not read, and may be damaged."""
        if criteria.are_of_days:
            return file.visits
        wanted = {name: getattr(criteria, name) for name in ("short_code", "domain", "visitor")}
        engine.execute(read_sql("data.maintenance", "sql/erased"), {"files": readable(self._lake, file), **wanted})
        ((gone,),) = engine.execute("SELECT count(*) FROM erased").fetchall()
        return int(gone)

    def _write_remaining(self, engine: duckdb.DuckDBPyConnection, file: LandedFile, path: Path) -> None:
        remaining = engine.sql(
            read_sql("data.maintenance", "sql/remaining"), params={"files": readable(self._lake, file)}
        )
        write_visits(remaining.to_arrow_reader(100_000), path)

    def _exchange(self, files: Sequence[LandedFile], staged: Sequence[Staged]) -> list[LandedFile]:
        """Put staged files in the place of live ones of one partition; how they were placed."""
        self._skip_rest(files, staged)
        placed: list[LandedFile] = []
        place = placing(self._lake, staged)

        def placing_and_telling() -> list[LandedFile]:
            placed.extend(place())
            return placed

        exchange = Exchange(files, self._now() + GRACE, changes_answers=True)
        self._lake.manifest.exchange(exchange, placing_and_telling)
        return placed

    def _skip_rest(self, files: Sequence[LandedFile], staged: Sequence[Staged]) -> None:
        """Let a log go on after its unfinished last line whose visit goes: with the line's end it would come back."""
        gone = {file.unfinished_of for file in files} - {file.unfinished_of for file in staged} - {None}
        if gone:
            with self._lake.manifest.transaction() as db:
                db.executemany("UPDATE batches SET whole_bytes = bytes WHERE id = ?", [(batch,) for batch in gone])


def delete(lake: Lake, dead: Collection[str], ended_at: datetime) -> None:
    """Delete dead files, once their grace is over, and what else in the folder may hold their visits.

    These are files that no manifest knows and files staged before `ended_at`. `empty_log` does the rest.
    """
    with lake.writing(), lake.rewriting():  # nobody is at work on what lies there
        for path in dead:
            (lake.root / path).unlink(missing_ok=True)
        lake.manifest.forget(dead)
        Compactor(lake).sweep(unknown_visits=True)
        for staged in lake.staging.rglob("*"):
            with suppress(FileNotFoundError):
                if staged.is_file() and staged.stat().st_mtime < ended_at.timestamp():
                    staged.unlink()


def empty_log(lake: Lake) -> bool:
    """Leave nothing in the manifest's write-ahead log, where visits may have waited for their file.

    Whether that was possible: it is not while somebody reads in the manifest. Try it again then.
    """
    path = lake.root / "manifest.sqlite"
    with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as db:  # who writes waits meanwhile
        ((is_busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not is_busy

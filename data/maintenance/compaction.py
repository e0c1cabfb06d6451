"""Few files: those of a past day become one, those of today a handful. What is deleted at last is swept here too.

An answer is the same before and after: no epoch moves, and no reader waits.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Final

import duckdb

from data.errors import Conflict
from data.maintenance.rewriting import Partition, Progress, partitions, readable, rewrite_each, rewriting_engine
from data.sql import read_sql
from data.store.lake import Lake
from data.store.landing import Staged, discard, new_path, publisher, write_visits
from data.store.manifest import READERS_GRACE, LandedFile, Replacement

MAX_OPEN_FILES: Final = 12
"""Files of a day that is not over, or to which visits still come; with those that land meanwhile fewer than 16."""
ABANDONED_AFTER: Final = timedelta(hours=24)
"""A staged file older than this belongs to nobody who is still at work."""


@dataclass
class CompactionResult:
    """What a compaction did."""

    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    visits: int = 0


class Compactor:
    """Merges the files of one lake."""

    def __init__(
        self,
        lake: Lake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        quiet_period: timedelta = timedelta(0),
    ) -> None:
        """A past day counts as past when nothing has landed in it for as long as `quiet_period`."""
        self._lake = lake
        self._now = now
        self._quiet_period = quiet_period
        self._engine: duckdb.DuckDBPyConnection | None = None

    def run(self, wait: bool = True, limit: int | None = None, progress: Progress | None = None) -> CompactionResult:
        """Merge what is to be merged, at most so many partitions; each changes as a whole or not at all.

        Without `wait`, nothing happens while somebody else rewrites. A partition with a file that is not what was
        written is left as it is; once the others are done, LakeDamaged is raised for the first one of these.
        """
        done = CompactionResult()
        rewrite_each(
            self._lake, self._work(), lambda part: self._merge(*part, done), wait=wait, limit=limit, progress=progress
        )
        return done

    def interrupt(self) -> None:
        """End a merge that is under way in another thread; nothing of it counts."""
        with suppress(duckdb.Error):  # it may just have ended
            if engine := self._engine:
                engine.interrupt()

    def sweep(self, unknown_visits: bool = False) -> int:
        """Delete dead files that nobody reads any more and what a crash left behind; how many files that were.

        A visit file that the manifest does not know stays, as the manifest may be the one that was lost; only an
        erasure asks for `unknown_visits` to go too, for they may hold what it erases.
        """
        dead = self._lake.manifest.deletable_files(self._now())
        for path in dead:
            (self._lake.root / path).unlink(missing_ok=True)
        self._lake.manifest.purge(dead)
        return len(dead) + sum(map(_delete_file, [*self._orphans(unknown_visits), *self._abandoned()]))

    def _work(self) -> list[tuple[Partition, list[LandedFile]]]:
        """The partitions that have too many files, each with those to merge."""
        today = self._now().date()
        latest = datetime.now(UTC) - self._quiet_period  # by the clock that files are dated by
        work = []
        for organization in self._lake.manifest.organizations():
            for partition, files in partitions(self._lake, organization):
                is_past = partition.day < today and all(file.checked_at <= latest for file in files)
                chosen = _to_merge([file for file in files if file.unfinished_of is None], is_past)
                if chosen:
                    work.append((partition, chosen))
        return work

    def _merge(self, partition: Partition, files: list[LandedFile], done: CompactionResult) -> None:
        live = {file.path for file in self._lake.manifest.live_files(*partition, partition.day)}
        if not live.issuperset(file.path for file in files):
            raise Conflict(f"visits of {partition.day} were changed by another process; try again.")
        paths = readable(self._lake, *files)
        staged = [Staged(new_path(self._lake), *partition, sum(file.visits for file in files))]
        try:
            with rewriting_engine(self._lake) as engine:
                self._engine = engine
                engine.execute("SET threads = 1")  # queries want the other cores
                merged = engine.sql(read_sql("data.maintenance", "sql/merged_visits"), params={"files": paths})
                write_visits(merged.to_arrow_reader(100_000), staged[0].path)
            replacement = Replacement(files, self._now() + READERS_GRACE, changes_answers=False)
            self._lake.manifest.replace_files(replacement, publisher(self._lake, staged))
        finally:
            self._engine = None
            discard(self._lake, staged)
        done.partitions += 1
        done.files_before += len(files)
        done.files_after += 1
        done.visits += staged[0].visits

    def _orphans(self, unknown_visits: bool) -> list[Path]:
        """Cubes, and visits if asked for, that no manifest knows. Cubes are counted again from visits."""
        with self._lake.manifest.transaction():  # nobody is placing files now
            there = list((self._lake.root / "cubes").glob("organization=[!_]*/month=*/*.parquet"))
            if unknown_visits:
                there += (self._lake.root / "visits").glob("organization=[!_]*/day=*/*.parquet")
            return [
                path for path in there if not self._lake.manifest.is_registered(str(path.relative_to(self._lake.root)))
            ]

    def _abandoned(self) -> list[Path]:
        """Staged files whose writer died."""
        latest = (self._now() - ABANDONED_AFTER).timestamp()
        return [path for path in self._lake.staging.rglob("*") if path.is_file() and _changed_at(path) < latest]


def _to_merge(files: list[LandedFile], is_past: bool) -> list[LandedFile]:
    if is_past:
        return files if len(files) > 1 else []
    return _smallest(files) if len(files) > MAX_OPEN_FILES else []


def _smallest(files: list[LandedFile]) -> list[LandedFile]:
    """The smallest files, up to one that is larger than all of them: so a visit is written about four times a day."""
    ascending = sorted(files, key=lambda file: file.visits)
    for number, total in enumerate(accumulate(file.visits for file in ascending[:-1]), 1):
        are_few = len(files) - number < MAX_OPEN_FILES
        if number > 1 and are_few and ascending[number].visits >= 1.25 * total:
            return ascending[:number]
    return ascending


def _changed_at(path: Path) -> float:
    """When a file was last written; one that was moved since it was found is nobody's leftover."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _delete_file(path: Path) -> bool:
    path.unlink(missing_ok=True)
    return True

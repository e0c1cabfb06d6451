"""Merges small files: those of a past day into one, which is judged, those of today into a few. Deletes dead files.

Answers change only where a day is judged, and readers never wait.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
from msgspec.structs import replace

from data.errors import Conflict
from data.maintenance.judging import DayJudge
from data.maintenance.rewriting import (
    InterruptibleEngine,
    Partition,
    limit_memory,
    readable,
    rewrite_each,
    until_memory_suffices,
)
from data.maintenance.unknown import clear_unknown
from data.progress import Progress
from data.signals import BEHAVIOUR_VERSION
from data.sql import read_sql
from data.store.clock import TOLERANCE, is_recent
from data.store.files import ROW_GROUP
from data.store.footers import replacing_footer
from data.store.lake import Lake
from data.store.landing import Staged, discard, new_path, publisher, write_visits
from data.store.link_index import LinkIndex
from data.store.manifest import READERS_GRACE, LandedFile, Replacement

MAX_OPEN_FILES: Final = 12
"""The number of files of a day that still receives visits; with those that land meanwhile, it stays below 16."""
_RANGES: Final = (1, 4, 16, 64, 256)
"""In how many ranges visits are merged: the next number is tried when memory was not enough."""
ABANDONED_AFTER: Final = timedelta(hours=24)
"""The age at which a staged file counts as left over from a killed program."""


@dataclass
class CompactionResult:
    """The result of a compaction."""

    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    visits: int = 0
    judged: int = 0  # past days


class Compactor:
    """Merges the files of one lake."""

    def __init__(
        self,
        lake: Lake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        quiet_period: timedelta = timedelta(0),
    ) -> None:
        """A past day is merged into one file when nothing has landed in it for `quiet_period`."""
        self._lake = lake
        self._now = now
        self._quiet_period = quiet_period
        self._engine = InterruptibleEngine(lake)
        self._judge = DayJudge()
        self._links = LinkIndex(lake)

    def run(self, wait: bool = True, limit: int | None = None, progress: Progress | None = None) -> CompactionResult:
        """Merge the files of partitions that have too many, and judge past days; `limit` at most, each one atomically.

        Without `wait`, partitions are skipped while another process rewrites files. Partitions with a damaged file are
        skipped; after the others are done, LakeDamaged is raised for the first of them.
        """
        result = CompactionResult()
        work = self._work()
        if not work:
            return result
        with self._engine.open() as engine:
            merge = partial(self._merge_intact, engine, result)
            rewrite_each(self._lake, work, merge, wait=wait, limit=limit, progress=progress)
        return result

    def interrupt(self) -> None:
        """Cancel a merge that is running in another thread. It changes nothing."""
        self._engine.interrupt()

    def sweep(self) -> int:
        """Delete dead files after their grace period, and leftovers of crashes; return the number of deleted files.

        Visit files that are not in the manifest are kept, since it may have been lost; unknown.py says where.
        """
        dead = self._lake.manifest.deletable_files(self._now())
        for path in dead:
            (self._lake.root / path).unlink(missing_ok=True)
        self._lake.manifest.purge(dead)
        return len(dead) + clear_unknown(self._lake) + sum(map(_delete_file, [*self._orphans(), *self._abandoned()]))

    def _work(self) -> list[tuple[Partition, list[LandedFile]]]:
        """The partitions that have too many files or are to be judged, each with the files to rewrite."""
        now = datetime.now(UTC)  # not self._now(): checked_at is set by the system clock
        work = []
        for partition in self._days_to_rewrite():
            today = self._lake.manifest.today(partition.organization, self._now())
            files = self._lake.manifest.live_files(*partition, partition.day)
            is_active = any(is_recent(file.checked_at, self._quiet_period, now) for file in files)
            is_past = partition.day < today and not is_active
            chosen = _to_rewrite(files) if is_past else _to_merge(files)
            if chosen:
                work.append((partition, chosen))
        return work

    def _days_to_rewrite(self) -> list[Partition]:
        """Each organization and day to merge or judge; those of most files come first.

        A past day with several live files with visits, or with one that was not judged; a day from today on with more
        than MAX_OPEN_FILES.
        """
        rows = self._lake.manifest.rows(
            "SELECT organization, day FROM files LEFT JOIN zones USING (organization) "
            "WHERE deletable_at IS NULL AND visits > 0 GROUP BY organization, day "
            "HAVING count(*) > iif(day < today_in(zone, $now), 1, $most) "
            "OR day < today_in(zone, $now) AND min(behaviour_version) = 0 "
            "ORDER BY count(*) DESC, organization, day",
            {"now": self._now().isoformat(), "most": MAX_OPEN_FILES},
        )
        return [Partition(organization, date.fromisoformat(day)) for organization, day in rows]

    def _merge_intact(
        self, engine: duckdb.DuckDBPyConnection, result: CompactionResult, part: tuple[Partition, list[LandedFile]]
    ) -> None:
        """Merge and judge; a file that cannot be read is named by what its bytes should be. Raises LakeDamaged."""
        try:
            self._merge(engine, result, part)
        except duckdb.Error:
            for file in part[1]:
                self._lake.recheck(file)
            raise

    def _merge(
        self, engine: duckdb.DuckDBPyConnection, result: CompactionResult, part: tuple[Partition, list[LandedFile]]
    ) -> None:
        partition, files = part
        live = self._lake.manifest.live_files(*partition, partition.day)
        if not {file.path for file in live}.issuperset(file.path for file in files):
            raise Conflict(f"visits of {partition.day} were changed by another process; try again.")
        today = self._lake.manifest.today(partition.organization, self._now())
        is_judged = partition.day < today and len(files) == len(live)
        limit_memory(engine, sum(file.visits for file in files))
        if is_judged:
            codes = sorted(self._links.links(partition.organization).short_codes)
            self._judge.judge(engine, readable(self._lake, *files), partition.day, codes)
        staged: list[Staged] = []
        try:
            staged.extend(self._write(engine, partition, group, is_judged) for group in _merged_apart(files))
            replacement = Replacement(files, self._now() + READERS_GRACE, changes_answers=False, judges=is_judged)
            self._lake.manifest.replace_files(replacement, publisher(self._lake, staged))
        finally:
            discard(self._lake, staged)
        result.partitions += 1
        result.files_before += len(files)
        result.files_after += len(staged)
        result.visits += sum(file.visits for file in files)
        result.judged += is_judged

    def _write(
        self, engine: duckdb.DuckDBPyConnection, partition: Partition, files: list[LandedFile], is_judged: bool
    ) -> Staged:
        """Write the visits of several files into one, with the signals of their day if it was judged."""
        version = BEHAVIOUR_VERSION if is_judged else 0
        visits, unfinished_of = sum(file.visits for file in files), files[0].unfinished_of
        staged = Staged(new_path(self._lake), *partition, visits, unfinished_of, behaviour_version=version)
        paths = readable(self._lake, *files)
        footer = replace(replacing_footer(self._lake, files), behaviour_version=version)
        try:
            until_memory_suffices(
                lambda ranges: write_visits(_merged(engine, paths, ranges, is_judged=is_judged), staged.path, footer),
                _RANGES,
            )
        except BaseException:
            discard(self._lake, [staged])
            raise
        return staged

    def _orphans(self) -> list[Path]:
        """Rollup files that are not in the manifest."""
        with self._lake.manifest.locked():  # no other process moves files meanwhile
            paths = list((self._lake.root / "rollups").glob("organization=[!_]*/month=*/*.parquet"))
            return [
                path for path in paths if not self._lake.manifest.is_registered(str(path.relative_to(self._lake.root)))
            ]

    def _abandoned(self) -> list[Path]:
        """Staged files that are older than ABANDONED_AFTER."""
        latest = (self._now() - ABANDONED_AFTER).timestamp()
        return [path for path in self._lake.staging.rglob("*") if path.is_file() and self._changed_at(path) < latest]

    def _changed_at(self, path: Path) -> float:
        """When a file was last written; infinity when it no longer exists.

        A time in the future becomes that of now: the file may be in use, so it is not deleted at once.
        """
        now = self._now().timestamp()
        try:
            if path.stat().st_mtime > now + TOLERANCE.total_seconds():
                os.utime(path, (now, now))
            return path.stat().st_mtime
        except FileNotFoundError:
            return math.inf


def _merged(
    engine: duckdb.DuckDBPyConnection, paths: list[str], ranges: int, *, is_judged: bool
) -> Iterator[pa.RecordBatch]:
    """The visits of several files, sorted, in so many ranges of about the same number of visits."""
    keys, files = [], {"files": paths}
    if ranges > 1:
        keys = engine.execute(read_sql("data.maintenance", "sql/merge_keys"), files).fetchall()
    inner = [keys[number * len(keys) // ranges][0] for number in range(1, ranges)]
    for first, end in pairwise([None, *inner, None]):
        bounds = {"first_key": first, "end_key": end}
        merged = engine.sql(
            read_sql("data.maintenance", "sql/judged_visits")
            if is_judged
            else read_sql("data.maintenance", "sql/merged_visits"),
            params={**files, **bounds},
        )
        yield from merged.to_arrow_reader(ROW_GROUP)


def _to_rewrite(files: list[LandedFile]) -> list[LandedFile]:
    """All files of a past day, unless they are merged and judged already."""
    is_done = len(_merged_apart(files)) == len(files) and all(file.behaviour_version for file in files)
    return [] if is_done else files


def _merged_apart(files: list[LandedFile]) -> list[list[LandedFile]]:
    """The files that become one: all but those of an unfinished last line, whose visit expires when it has grown."""
    finished = [file for file in files if file.unfinished_of is None]
    return [group for group in (finished, *([file] for file in files if file.unfinished_of is not None)) if group]


def _to_merge(files: list[LandedFile]) -> list[LandedFile]:
    """The files of a day that still receives visits that become one, if it has too many."""
    finished = [file for file in files if file.unfinished_of is None]
    return _smallest(finished) if len(finished) > MAX_OPEN_FILES else []


def _smallest(files: list[LandedFile]) -> list[LandedFile]:
    """The smallest files, up to one that is larger than their sum; a visit is then rewritten about four times a day."""
    ascending = sorted(files, key=lambda file: file.visits)
    for number, total in enumerate(accumulate(file.visits for file in ascending[:-1]), 1):
        are_few = len(files) - number < MAX_OPEN_FILES
        if number > 1 and are_few and ascending[number].visits >= 1.25 * total:
            return ascending[:number]
    return ascending


def _delete_file(path: Path) -> bool:
    path.unlink(missing_ok=True)
    return True

"""Merges small files: all files of a past day into one file, and today's files into a few. Past days are also judged.

This module also deletes dead files. Only judging a day changes answers, and readers never wait.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.disk.files import ROW_GROUP
from data.errors import Conflict, TrafficError
from data.links.index import LinkIndex
from data.manifest.clock import TOLERANCE
from data.manifest.files import READERS_GRACE
from data.manifest.policies import JUDGING, MERGING
from data.progress import Progress, ignore_progress
from data.signals import BEHAVIOUR_VERSION, BITS, LANDED
from data.sql import read_sql
from data.store.engines import InterruptibleEngine, limit_memory, run_side_by_side, until_memory_suffices
from data.store.lake import Lake
from data.store.landing import write_visits
from data.store.layout import SPILL_LOCK, delete_abandoned
from data.store.rewriting import Partition, Rewrite, readable, rewrite, rewrite_each
from data.store.unknown import clear_unknown
from data.tasks.judging import judge
from data.tasks.lake_process import MAX_VISITS_IN_SERVER, LakeProcess
from data.tasks.merge_plan import MergeGroup, concurrent_groups, days_to_merge, files_by_result, group_merges, visits_of

_RANGES: Final = (1, 2, 4, 8, 16, 64, 256)
"""The numbers of ranges in which visits are merged: if memory runs out, the next number is tried."""
RANGE_VISITS: Final = 66_000
"""Number of visits sorted at a time, or an eighth of all visits if that is more: for 528,000 visits, this takes 154 MB
instead of 308, in the same time."""
COMMAND_THREADS: Final = 2
"""Number of threads for commands, which serve no requests: a million visits over 90 days are judged in 2.3 s instead of
4.0, with 360 MB instead of 240."""
ABANDONED_AFTER: Final = timedelta(hours=24)
"""The age at which a staged file is assumed to have been left by a killed program."""


@dataclass
class CompactionResult:
    """Counts of merged files and visits, and of judged days."""

    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    visits: int = 0
    judged: int = 0  # number of judged past days


class Compactor:
    """Merges the files of one lake."""

    def __init__(
        self,
        lake: Lake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        quiet_period: timedelta = timedelta(0),
        process: LakeProcess | None = None,
        *,
        threads: int = 1,
        version: int = BEHAVIOUR_VERSION,
    ) -> None:
        """Prepare to merge each past day into one file once nothing has landed in it for `quiet_period`.

        The day is also judged, unless this `version` of the signals or a later version has judged it; with `version` 1,
        all judged days are skipped. With `process`, days with more than MAX_VISITS_IN_SERVER visits are merged in that
        process. With several `threads`, merges for one organization run in parallel.
        """
        self._lake = lake
        self._now = now
        self._quiet_period = quiet_period
        self._process = process
        self._threads = threads
        self._version = version
        self._engine = InterruptibleEngine(lake)
        self._queue: list[list[MergeGroup]] = []  # may be left by an earlier run that reached its limit
        self._counting = threading.Lock()
        self._links = LinkIndex(lake)

    def run(
        self,
        wait: bool = True,
        limit: int | None = None,
        progress: Progress = ignore_progress,
        organization: str | None = None,
        are_past: bool | None = None,
    ) -> CompactionResult:
        """Merge days with too many files, and judge past days, in at most `limit` steps: small days share a merge, and
        parallel merges count as one step.

        Each merge is atomic. Without `wait`, days are skipped while another process rewrites their files. Days with a
        damaged file are also skipped; once the others are done, LakeDamaged is raised for the first damaged file.
        Without `organization`, days of all organizations are merged. Unless `are_past` is None, only past days (True)
        or only open days (False) are merged.
        """
        result = CompactionResult()
        if not self._queue:
            merges = days_to_merge(self._lake, self._now(), self._quiet_period, organization, self._version)
            groups = group_merges(merge for merge in merges if are_past in {None, merge.is_past})
            self._queue = concurrent_groups(groups, self._threads)
        if not self._queue:
            return result

        def merge(groups: Sequence[MergeGroup]) -> None:
            each = zip(engines, groups, strict=False)
            run_side_by_side([partial(self._merge_intact, engine, result, group) for engine, group in each])

        with ExitStack() as stack:
            engines = [stack.enter_context(self._engine.open()) for _ in range(max(map(len, self._queue)))]
            rewrite_each(
                self._lake, self._queue, lambda groups: groups[0][0].partition.organization, merge,
                wait=wait, limit=limit, progress=progress,
            )  # fmt: skip
        return result

    def merge_day(self, partition: Partition) -> None:
        """Merge a day if it is due, and judge it if it is past. The caller must hold the lock for rewriting files.

        Raises Conflict if the day changes during the merge, and LakeDamaged for a damaged file.
        """
        merges = days_to_merge(self._lake, self._now(), self._quiet_period, partition.organization, self._version)
        with self._engine.open() as engine:
            for merge in merges:
                if merge.partition == partition:
                    self._merge_intact(engine, CompactionResult(), [merge])

    def interrupt(self) -> None:
        """Cancel a merge that is running in another thread, without changing anything."""
        self._engine.interrupt()

    def sweep(self) -> int:
        """Delete dead files after their grace period, and leftovers from crashes; return the number of files deleted.

        Visit files that are not in the manifest are kept, unless a killed merge left them, since the manifest may have
        been lost; see unknown.py.
        """
        now, manifest, root = self._now(), self._lake.manifest, self._lake.root
        dead = manifest.files.deletable(now)
        for name in dead:
            (root / name).unlink(missing_ok=True)
        manifest.files.purge(dead)
        count = len(dead) + clear_unknown(self._lake)
        with manifest.locked():  # no other process moves files during this
            rollups = list((root / "rollups").glob("organization=[!_]*/month=*/*.parquet"))
            leftovers = [path for path in rollups if not manifest.files.is_registered(str(path.relative_to(root)))]
        delete_abandoned(self._lake.staging)
        for path in self._lake.staging.rglob("*"):
            with suppress(FileNotFoundError):
                if not path.is_file() or path.name.startswith(SPILL_LOCK):  # a running engine has locked it
                    continue
                if path.stat().st_mtime > (now + TOLERANCE).timestamp():  # it may be in use: delete it in a day
                    os.utime(path, (now.timestamp(), now.timestamp()))
                elif path.stat().st_mtime < (now - ABANDONED_AFTER).timestamp():
                    leftovers.append(path)
        for path in leftovers:
            path.unlink(missing_ok=True)
        return count + len(leftovers)

    def _merge_intact(self, engine: duckdb.DuckDBPyConnection, result: CompactionResult, merges: MergeGroup) -> None:
        """Merge and judge days together. If that fails for several days, queue each day separately and raise Conflict.

        If the engine fails for a single day, verify its files before raising the error. Raises LakeDamaged for a
        damaged file.
        """
        try:
            if self._process and len(merges) == 1 and visits_of(merges) > MAX_VISITS_IN_SERVER:
                quiet = self._quiet_period.total_seconds()
                self._process.run(merge_day, *map(str, merges[0].partition), self._now().isoformat(), str(quiet))
                result.partitions += 1
            else:
                self._merge(engine, result, merges)
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, TrafficError, OSError) as error:
            if len(merges) > 1:
                self._queue.extend([[merge]] for merge in merges)
                raise Conflict("These days cannot be merged together; each will be merged separately.") from error
            if isinstance(error, duckdb.Error):
                for file in merges[0].files:
                    self._lake.recheck(file)
            raise

    def _merge(self, engine: duckdb.DuckDBPyConnection, result: CompactionResult, merges: MergeGroup) -> None:
        for merge in merges:
            there = {file.path for file in self._lake.manifest.files.live(*merge.partition, merge.partition.day)}
            chosen = {file.path for file in merge.files}
            if not (chosen == there if merge.is_past else chosen <= there):
                raise Conflict(
                    f"visits of {merge.partition.day} have since been changed by another process; try again."
                )
        groups = [group for merge in merges for group in files_by_result(merge.files)]
        files = [file for group in groups for file in group]
        limit_memory(engine, visits := sum(file.visits for file in files))
        paths, days = readable(self._lake, *files), None
        if judges := merges[0].is_past:
            codes = self._links.links(files[0].organization).short_codes.to_pylist()
            days = judge(engine, paths, files, codes)
        outputs = [None, *(number for number, group in enumerate(groups) for _ in group)]
        version = BEHAVIOUR_VERSION if judges else 0

        def merge_groups(work: Rewrite) -> None:
            targets = [work.stage(group, sum(file.visits for file in group), version) for group in groups]

            def write(ranges: int) -> None:
                runs = groupby(
                    merged_visits(engine, {"files": paths, "outputs": outputs}, ranges, days), key=itemgetter(0)
                )
                for (_, rows), target in zip(runs, targets, strict=True):
                    write_visits((batch for _, batch in rows), *target)

            until_memory_suffices(write, [n for n in _RANGES if n >= min(8, math.ceil(visits / RANGE_VISITS))])

        policy = JUDGING if judges else MERGING
        new = rewrite(self._lake, files[0].organization, policy, merge_groups, now=self._now, grace=READERS_GRACE)
        with self._counting:
            result.partitions += len(merges)
            result.files_before += len(files)
            result.files_after += len(new)
            result.visits += visits
            result.judged += len(merges) if judges else 0


def merge_day(lake: Lake, organization: str, day: str, now: str, quiet_seconds: str) -> None:
    """Run Compactor.merge_day for LakeProcess; the day and the time are in ISO 8601 format."""
    compactor = Compactor(lake, lambda: datetime.fromisoformat(now), timedelta(seconds=float(quiet_seconds)))
    compactor.merge_day(Partition(organization, date.fromisoformat(day)))


def merged_visits(
    engine: duckdb.DuckDBPyConnection, files: Mapping[str, object], ranges: int, days: Sequence[date | None] | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Read the visits in files range by range; yield them sorted, in batches, each with the number of its output file.

    `files` contains the paths, as "files", and the number of the output file for each path, as "outputs". With `days`
    (the day of each path), the signals found by `judge` are added to the visits.
    """
    keys = engine.execute(read_sql("data.tasks", "sql/merge_keys"), files).fetchall() if ranges > 1 else []
    inner = [keys[number * len(keys) // ranges][-1] for number in range(1, ranges)]
    read = {**files, **({"days": days, "bits": BITS, "landed": LANDED} if days else {})}
    for first, end in pairwise([None, *inner, None]):
        found = engine.sql(
            read_sql("data.tasks", "sql/judged_visits") if days else read_sql("data.tasks", "sql/merged_visits"),
            params={**read, "first_key": first, "end_key": end},
        )
        for batch in found.to_arrow_reader(ROW_GROUP):
            runs, visits = pc.run_end_encode(batch["output"]), batch.drop_columns(["output"])
            ends = pairwise([0, *runs.run_ends.to_pylist()])
            for number, (start, stop) in zip(runs.values.to_pylist(), ends, strict=True):
                yield number, visits.slice(start, stop - start)

"""Erases visits of one organization: from answers immediately, and from the disk after a grace period for running
queries.

Visits that expire by age, in all organizations, are deleted by retention.py.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from data.disk.files import ROW_GROUP
from data.errors import LakeDamaged, TrafficError
from data.hosts import normalized_host
from data.manifest.clock import TOLERANCE
from data.manifest.erasures import Erasure
from data.manifest.files import LandedFile
from data.manifest.policies import ERASING
from data.progress import Progress, ignore_progress
from data.sql import read_sql
from data.store.engines import limit_memory, rewriting_engine, until_memory_suffices
from data.store.footers import Footer, read_visit_file
from data.store.lake import Lake
from data.store.landing import atomic_write, write_visits
from data.store.layout import SPILL_LOCK
from data.store.pending import flush_all
from data.store.rewriting import Partition, Rewrite, partitions, readable, rewrite
from data.store.unknown import partition_of, remove_all_visits, unknown_files
from data.tasks.compaction import Compactor

GRACE: Final = timedelta(seconds=15)
"""How long files stay on disk after an erasure: longer than a query may run (10 s), so that running queries succeed.

This is shorter than READERS_GRACE, so an analyst's shell may lose files that it is reading.
"""


class FilesInUse(TrafficError):
    """Another process keeps reading data that must be deleted."""


class Criteria(NamedTuple):
    """The criteria for visits to erase: a visit must match all given criteria; without criteria, all visits match."""

    short_code: str | None = None  # case-sensitive
    domain: str | None = None  # in any spelling of the host
    no_domain: bool | None = None  # True: only visits without a domain
    visitor: int | None = None
    since: date | None = None  # matches this day and later days, in the organization's zone
    before: date | None = None  # matches days before this day

    @property
    def selects_whole_days(self) -> bool:
        """True if, on each day, either all visits match or none do."""
        return (self.short_code, self.domain, self.no_domain, self.visitor) == (None,) * 4

    def matches_day(self, day: date) -> bool:
        """Return whether any visits of a day can match."""
        return (self.since or date.min) <= day and (self.before is None or day < self.before)


@dataclass
class ErasureResult:
    """The visits that were erased or, in a dry run, would be erased."""

    organization: str
    criteria: Criteria
    ended_at: datetime  # time when the last visit was removed from answers
    visits: int = 0
    unknown_visits: int = 0  # visits in files that are not in the manifest, so no query reads them
    partitions: int = 0
    before: list[LandedFile] = field(default_factory=list)  # the files that contained the erased visits
    after: list[LandedFile] = field(default_factory=list)  # the new files with the remaining visits
    dead: list[str] = field(default_factory=list)
    """The paths of all files to delete: `before`, and earlier dead files that may contain the same visits."""


class Eraser:
    """Erases visits from one lake."""

    def __init__(self, lake: Lake, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._lake = lake
        self._now = now

    def run(
        self, organization: str, criteria: Criteria, dry_run: bool = False, progress: Progress = ignore_progress
    ) -> ErasureResult:
        """Remove the matching visits from answers, one partition after another, each atomically.

        With `dry_run`, the visits are only counted. Otherwise, after GRACE, call `delete_files` and `manifest.shrink`
        to delete them from the disk. Raises LakeDamaged if a file that must be read is damaged; earlier partitions stay
        erased.
        """
        erased = ErasureResult(organization, criteria, self._now())
        if not dry_run:
            if criteria.short_code is not None or criteria.visitor is not None:
                last = criteria.before - timedelta(days=1) if criteria.before else erased.ended_at.date()
                erasure = Erasure(erased.ended_at, criteria.short_code if criteria.visitor is None else None)
                self._lake.manifest.erasures.record(organization, erasure, criteria.since or date.min, last)
            with self._lake.import_lock():  # pending visits that arrive later are moved by the server that accepts them
                latest = self._lake.manifest.pending.latest_received()
                while self._lake.manifest.pending.has_any_received_until(latest):
                    flush_all(self._lake)
        days = [partition for partition, _ in partitions(self._lake, organization)]
        work = [partition for partition in days if criteria.matches_day(partition.day)]
        with rewriting_engine(self._lake.staging) as engine:
            for number, partition in enumerate(work, 1):
                self._run(engine, partition, dry_run, erased)
                progress(number, len(work))
            with self._lake.import_lock(), self._lake.rewrite_lock(organization=organization):
                for path in unknown_files(self._lake, organization):
                    if criteria.matches_day(partition_of(path)[1]):
                        erased.unknown_visits += self._erase_unknown(engine, path, dry_run, criteria)
        if not dry_run:
            erased.ended_at = self._now()
            erased.dead = self._lake.manifest.files.expire_now(organization, criteria.before, erased.ended_at + GRACE)
        return erased

    def _run(
        self, engine: duckdb.DuckDBPyConnection, partition: Partition, dry_run: bool, erased: ErasureResult
    ) -> None:
        """Erase the matching visits in one partition."""
        files: list[LandedFile] = []

        def erase(work: Rewrite) -> None:
            for file in self._lake.manifest.files.live(partition.organization, partition.day, partition.day):
                limit_memory(engine, file.visits)
                count = file.visits
                if not erased.criteria.selects_whole_days:  # otherwise, it is not read and may be damaged
                    count = _count_matching(engine, paths := readable(self._lake, file), erased.criteria)
                if count:
                    files.append(file)
                    erased.visits += count
                if count and not dry_run:
                    if count == file.visits:
                        work.remove([file])
                    else:
                        target = work.stage([file], file.visits - count, file.behaviour_version)
                        _write_remaining(engine, paths, file.visits, *target)

        new = rewrite(self._lake, partition.organization, ERASING, erase, now=self._now, grace=GRACE)
        erased.after += [file for file in new if file.visits]
        erased.before += files
        erased.partitions += bool(files)

    def _erase_unknown(self, engine: duckdb.DuckDBPyConnection, path: Path, dry_run: bool, criteria: Criteria) -> int:
        """Rewrite a file that is not in the manifest, without the visits that match; return the number of these visits.

        The record in the footer is kept. If the file cannot be read, delete it if whole days are erased; otherwise
        raise LakeDamaged.
        """
        try:
            file = read_visit_file(path)
        except LakeDamaged:
            if not criteria.selects_whole_days:
                raise
            if not dry_run:
                path.unlink()
            return 0
        limit_memory(engine, file.visits)
        count = file.visits
        if not criteria.selects_whole_days:
            count = _count_matching(engine, [self._lake.seed_visits, str(path)], criteria)
        if dry_run or not count:
            return count
        if count == file.visits:
            remove_all_visits(self._lake, file)
            return count
        with atomic_write(path, self._lake.staging) as staged:
            _write_remaining(engine, [self._lake.seed_visits, str(path)], file.visits, staged, file.footer)
        return count


def _count_matching(engine: duckdb.DuckDBPyConnection, paths: list[str], criteria: Criteria) -> int:
    """Store the row numbers of matching visits in the table `erased_rows`; return their count. The first path is the
    seed.
    """
    wanted = {name: getattr(criteria, name) for name in ("short_code", "domain", "no_domain", "visitor")}
    if criteria.domain is not None:
        wanted["domain"] = normalized_host(criteria.domain) or criteria.domain
    engine.execute(read_sql("data.tasks", "sql/erased_rows"), {"files": paths, **wanted})
    ((count,),) = engine.execute("SELECT count(*) FROM erased_rows").fetchall()
    return int(count)


def _write_remaining(
    engine: duckdb.DuckDBPyConnection, paths: list[str], visits: int, target: Path, footer: Footer
) -> None:
    """Write to `target` the visits of a file that are not in `erased_rows`. The first path is the seed."""

    def remaining(rows: int) -> Iterator[pa.RecordBatch]:
        for first in range(0, visits, rows):
            part = {"files": paths, "first_row": first, "end_row": first + rows}
            found = engine.sql(read_sql("data.tasks", "sql/remaining_visits"), params=part)
            yield from found.to_arrow_reader(ROW_GROUP)

    until_memory_suffices(lambda rows: write_visits(remaining(rows), target, footer), (visits, ROW_GROUP))


def delete_files(lake: Lake, dead: Collection[str], ended_at: datetime) -> None:
    """Delete dead files after their grace period, and files staged before `ended_at`, which may contain erased visits.

    Call `manifest.shrink` afterwards.
    """
    with lake.import_lock(), lake.rewrite_lock():  # a publication that loses a staged file is retried
        for path in dead:
            (lake.root / path).unlink(missing_ok=True)
        lake.manifest.files.purge(dead)
        Compactor(lake).sweep()
        for staged in lake.staging.rglob("*"):
            with suppress(FileNotFoundError):
                changed_at = staged.stat().st_mtime
                is_future = changed_at > (datetime.now(UTC) + TOLERANCE).timestamp()
                is_lock = staged.name.startswith(SPILL_LOCK)  # a running engine's lock, which the sweep has left
                if staged.is_file() and not is_lock and (changed_at < ended_at.timestamp() or is_future):
                    staged.unlink()

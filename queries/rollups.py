"""Builds rollups: the counts of closed days, precomputed so that queries over those days do not read visits.

data/store/rollups.py decides for which days a stored rollup is valid; queries/relations/ defines the meaning of rows.
"""

import calendar
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data import Lake
from data.manifest.clock import is_recent
from data.manifest.files import LandedFile
from data.manifest.rollups import Rollup
from data.progress import Progress, ignore_progress
from data.signals import BITS, OWN
from data.store.engines import InterruptibleEngine, limit_memory
from data.store.landing import new_path
from data.store.rewriting import rewrite_each
from data.store.rollups import (
    RelationRows,
    live_rollups,
    months_to_count,
    replace_rollup,
    source_files_by_day,
    write_rollup,
)
from data.tasks.lake_process import MAX_VISITS_IN_SERVER, LakeProcess
from queries.definitions import define_relations, rollup_schema
from queries.prelude import relation_names, rollup_version
from queries.scope import Scope
from queries.shared_visits import by_source, columns_of_relations
from queries.snapshot import (
    ClusterSnapshot,
    Snapshot,
    VisitFiles,
    counted_version,
    for_cluster,
    one_source,
    set_uncovered_files,
    set_variables,
    take_snapshot,
    visit_files,
)

CHUNK_VISITS: Final = 500_000
"""Maximum number of visits counted at once. A day with more visits is a separate chunk."""

MAX_VISITS_IN_MEMORY: Final = 60_000
"""Up to this number of visits, a month is read once for all relations; otherwise each relation opens every file twice.
For 33,000 visits, reading once halves the CPU time. Each visit is kept a second time for its domain: 150,000
visits took 73 MB.
"""

STORED_BEFORE: Final = "FROM stored_before($relation)"
COUNTED_DAILY: Final = "FROM counted_daily($relation)"
CUT_DOMAINS: Final = "SELECT DISTINCT day FROM daily_domains WHERE domain = '(other)'"
COUNTED_MONTHLY: Final = "FROM counted_monthly($relation)"
COUNTED_ELSEWHERE: Final = "counted_elsewhere"
BY_DOMAIN: Final = "visits_by_domain"
COLUMNS_BY_DOMAIN: Final = "SELECT COLUMNS(lambda name: list_contains($columns, name)) FROM aside_and_visits_by_domain"
ADDED_MONTHLY: Final = (
    "SELECT * EXCLUDE (days), bit_or(days) AS days "
    "FROM (FROM stored_before($relation) UNION ALL BY NAME FROM counted_elsewhere) GROUP BY ALL"
)


class Month(NamedTuple):
    """One calendar month of one organization; `first` is the first day of the month."""

    organization: str
    first: date

    @property
    def last(self) -> date:
        """The last day of the month."""
        return self.first.replace(day=calendar.monthrange(self.first.year, self.first.month)[1])


class RelationCounter(Protocol):
    """Counts the rows of relations outside this process; implemented by Cluster."""

    def takes(self, visits: int) -> bool:
        """Return whether the counter is meant for this many visits."""

    def rollup_rows(self, relation: str, snapshot: ClusterSnapshot, cancelled: threading.Event) -> pa.Table:
        """Return the rows of a relation for a new rollup, counted from the visits in a cluster snapshot."""

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the rollup_rows call that was given this event."""


class RollupBuilder:
    """Builds the rollups of one lake."""

    def __init__(
        self,
        lake: Lake,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        quiet_period: timedelta = timedelta(0),
        counter: RelationCounter | None = None,
        process: LakeProcess | None = None,
    ) -> None:
        """Prepare the builder. A past day is closed, and may be counted, once no file has landed for it
        during `quiet_period`.

        A month is counted by `counter` if its `takes` accepts the number of new visits, by `process` if there are more
        than MAX_VISITS_IN_SERVER, and otherwise by the builder itself.
        """
        self._lake = lake
        self._clock = clock
        self._quiet_period = quiet_period
        self._counter = counter
        self._process = process
        self._cancelled = threading.Event()
        self._engine = InterruptibleEngine(lake)
        self._queue: list[Month] = []  # months left over by a run that reached its limit

    def run(self, wait: bool = True, limit: int | None = None, progress: Progress = ignore_progress) -> int:
        """Build the missing rollups of closed days for at most `limit` months, and return the number of months built.

        Without `wait`, months are skipped while another process rewrites their organization's files. A month that
        cannot be counted is skipped; the first LakeDamaged or duckdb.Error is raised at the end, unless `limit` is
        reached.
        """
        self._queue = self._queue or self._months_to_build()
        if not self._queue:
            return 0
        with self._engine.open() as engine:
            engine.execute("SET GLOBAL parquet_metadata_cache = TRUE")
            define_relations(engine, self._lake)
            build, organization_of = partial(self._build_month, engine), attrgetter("organization")
            return rewrite_each(
                self._lake, self._queue, organization_of, build, wait=wait, limit=limit, progress=progress
            )

    def count_month(self, month: Month) -> None:
        """Build the rollup of one month if it lacks a closed day. The caller must hold the lock for rewriting files."""
        with self._engine.open() as engine:
            define_relations(engine, self._lake)
            self._build_month(engine, month)

    def interrupt(self) -> None:
        """Cancel a run() in another thread, even while `counter` is counting. The month being built is not stored."""
        if self._counter:
            self._counter.stop(self._cancelled)
        self._engine.interrupt()

    def _months_to_build(self) -> list[Month]:
        """Return the months with a closed day that has no rollup."""
        choices = (OWN, OWN | BITS["file"])
        versions = [[rollup_version(behaviour, aside) for aside in choices] for behaviour in (False, True)]
        return [Month(*row) for row in months_to_count(self._lake, self._clock(), self._quiet_period, versions)]

    def _files_to_count(self, organization: str, files: Sequence[LandedFile]) -> list[LandedFile]:
        """Return the files of closed days that have no rollup yet."""
        today = self._lake.manifest.organizations.today(organization, self._clock())
        now = datetime.now(UTC)  # the system clock sets checked_at
        recently_landed = {file.day for file in files if is_recent(file.checked_at, self._quiet_period, now)}
        version = counted_version(self._lake, organization)
        covered = live_rollups(self._lake, organization, version, files).days
        return [file for file in files if file.day < today and file.day not in recently_landed | covered]

    def _build_month(self, engine: duckdb.DuckDBPyConnection, month: Month) -> None:
        files = self._lake.manifest.files.live(*month, month.last)
        added = self._files_to_count(month.organization, files)
        if not added:
            return
        chunks = _chunks(added)
        visits = sum(file.visits for file in added)
        is_for_counter = self._counter and self._counter.takes(visits)
        if self._process and visits > MAX_VISITS_IN_SERVER and not is_for_counter:
            quiet = self._quiet_period.total_seconds()
            self._process.run(count_month, *map(str, month), self._clock().isoformat(), str(quiet))
            return
        for file in added:
            self._lake.recheck(file)  # counts of a damaged file would be served for a long time
        before = take_snapshot(self._lake, Scope(*month, month.last))
        # days with more domains than a rollup keeps are added below
        without_domains = before.days_without_domains
        if self._counter and is_for_counter:
            elsewhere = for_cluster(self._lake, before, added)
            if elsewhere.high_cardinality_days:
                counted = self._counter.rollup_rows("daily_domains", elsewhere, self._cancelled)
                cut = counted.filter(pc.field("domain") == "(other)")["day"]
                without_domains += tuple(pc.unique(cut).to_pylist())
            elsewhere = replace(elsewhere, days_without_domains=without_domains)
            rows = self._rows_counted_elsewhere(self._counter, elsewhere, engine, before)
        else:
            limit_memory(engine, max(sum(file.visits for file in chunk) for chunk in chunks))
            if before.high_cardinality_days:
                set_variables(engine, before)
                without_domains += tuple(day for (day,) in engine.execute(CUT_DOMAINS).fetchall())
            rows = _rollup_rows(engine, self._lake, replace(before, days_without_domains=without_domains), chunks)
        stored = [file for file in files if file.day in before.closed_days]
        days = source_files_by_day([*stored, *added])
        version = rollup_version(before.behaviour, before.aside)
        rollup = Rollup(*month, version, days, frozenset(without_domains) & days.keys())
        staged = new_path(self._lake)
        try:
            write_rollup(rows, rollup_schema(engine), staged)
            replace_rollup(self._lake, rollup, staged, self._clock())
        finally:
            staged.unlink(missing_ok=True)

    def _rows_counted_elsewhere(
        self, counter: RelationCounter, visits: ClusterSnapshot, engine: duckdb.DuckDBPyConnection, before: Snapshot
    ) -> Iterator[RelationRows]:
        """Yield rows as _rollup_rows does: the stored rows, and the rows that `counter` counts from `visits`."""
        set_variables(engine, before)
        schema = rollup_schema(engine)
        for name in relation_names():
            counted = counter.rollup_rows(name, visits, self._cancelled)
            counted = counted.cast(pa.schema([schema.field(column) for column in counted.column_names]))
            if not before.closed_days:
                yield RelationRows(name, [counted])
                continue
            asked = {"relation": name}
            if name in relation_names("daily"):
                yield RelationRows(name, [engine.sql(STORED_BEFORE, params=asked).to_arrow_table(), counted])
            else:
                engine.register(COUNTED_ELSEWHERE, counted)
                yield RelationRows(name, [engine.sql(ADDED_MONTHLY, params=asked).to_arrow_table()])


def count_month(lake: Lake, organization: str, first: str, now: str, quiet_seconds: str) -> None:
    """Run RollupBuilder.count_month inside a LakeProcess; the month's first day and the time are in ISO 8601."""
    builder = RollupBuilder(lake, lambda: datetime.fromisoformat(now), timedelta(seconds=float(quiet_seconds)))
    builder.count_month(Month(organization, date.fromisoformat(first)))


def _chunks(files: Sequence[LandedFile]) -> list[list[LandedFile]]:
    """Return the files in chunks of whole days with at most CHUNK_VISITS visits each; a day with more is a separate
    chunk.
    """
    chunks: list[list[LandedFile]] = []
    room = 0
    for _, of_day in groupby(sorted(files, key=lambda file: file.day), lambda file: file.day):
        day = list(of_day)
        visits = sum(file.visits for file in day)
        if visits > room:
            chunks.append([])
            room = CHUNK_VISITS
        chunks[-1] += day
        room -= visits
    return chunks


def _rollup_rows(
    engine: duckdb.DuckDBPyConnection, lake: Lake, before: Snapshot, chunks: Sequence[Sequence[LandedFile]]
) -> Iterator[RelationRows]:
    """Yield the rows of each relation in turn: the stored rows, and the rows counted from the visits in `chunks`.

    Daily relations are counted chunk by chunk to bound memory, because they group by visitor. Monthly relations have
    few groups and are counted in one query.
    """
    added = [*chain(*chunks)]
    snapshot = replace(before, uncovered_files=visit_files(lake, added), sources=one_source(BY_DOMAIN))
    set_variables(engine, snapshot)
    if snapshot.uncovered_files.visits <= MAX_VISITS_IN_MEMORY:
        columns = {"columns": columns_of_relations(relation_names())}
        visits = engine.sql(COLUMNS_BY_DOMAIN, params=columns).to_arrow_table().combine_chunks()
        chunks = [added]
        in_memory = one_source(f"{BY_DOMAIN}_in_memory")
        set_variables(engine, replace(snapshot, sources=in_memory, in_memory=by_source(BY_DOMAIN, visits)))
    stored = [(STORED_BEFORE, visit_files(lake, []))] if before.closed_days else []
    for name in relation_names("daily"):
        counted = [(COUNTED_DAILY, visit_files(lake, chunk)) for chunk in chunks]
        yield _count_relation(engine, name, [*stored, *counted])
    for name in relation_names("monthly"):
        yield _count_relation(engine, name, [(COUNTED_MONTHLY, visit_files(lake, added))])


def _count_relation(
    engine: duckdb.DuckDBPyConnection, relation: str, queries: Sequence[tuple[str, VisitFiles]]
) -> RelationRows:
    """Return the rows of one relation from `queries`: pairs of an SQL text and the visit files that it reads."""
    tables = []
    for sql, files in queries:
        set_uncovered_files(engine, files)
        tables.append(engine.sql(sql, params={"relation": relation}).to_arrow_table())
    return RelationRows(relation, tables)

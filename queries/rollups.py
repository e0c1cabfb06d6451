"""Builds rollups: what the visits of closed days come to is counted ahead, so that no answer over them grows with them.

For which days a rollup may be taken is known in data/store/rollups.py; what its rows mean, in the relations.
"""

import calendar
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import chain, groupby
from typing import Final, NamedTuple

import duckdb

from data import Lake
from data.maintenance.rewriting import Progress, rewrite_each, rewriting_engine
from data.store.landing import new_path
from data.store.manifest import LandedFile
from data.store.rollups import (
    RelationRows,
    Rollup,
    live_rollups,
    month_of,
    publish,
    source_files_by_day,
    write_rollup,
)
from queries.prelude import relation_names, rollup_version
from queries.scope import Scope
from queries.variables import (
    Variables,
    define_relations,
    file_lists,
    one_source,
    rollup_schema,
    scope_variables,
    set_variables,
)

CHUNK_VISITS: Final = 500_000
"""About how many are counted at once; a day that has more is one chunk."""

STORED_BEFORE: Final = "FROM stored_before(getvariable('relation'))"
COUNTED_DAILY: Final = "FROM counted_daily(getvariable('relation'))"
COUNTED_MONTHLY: Final = "FROM counted_monthly(getvariable('relation'))"


class Month(NamedTuple):
    """One organization's visits of a calendar month, by its first day."""

    organization: str
    first: date

    @property
    def last(self) -> date:
        """Its last day."""
        return self.first.replace(day=calendar.monthrange(self.first.year, self.first.month)[1])


class RollupBuilder:
    """Builds the rollups of one lake."""

    def __init__(
        self,
        lake: Lake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        quiet_period: timedelta = timedelta(0),
    ) -> None:
        """A past day is closed when nothing has landed in it for as long as `patience`."""
        self._lake = lake
        self._clock = now
        self._patience = quiet_period
        self._engine: duckdb.DuckDBPyConnection | None = None

    def run(self, wait: bool = True, limit: int | None = None, progress: Progress | None = None) -> int:
        """Count closed days that no rollup covers, at most so many months; how many months that were.

        Without `wait`, nothing happens while somebody else rewrites. A month with a file that is not what was
        written is left as it is; once the others are done, LakeDamaged is raised for the first one of these.
        """
        months = self._months_to_build()
        if not months:
            return 0
        with rewriting_engine(self._lake) as engine:
            try:
                self._engine = engine
                _prepare(engine, self._lake)
                return rewrite_each(
                    self._lake, months, partial(self._build_month, engine), wait=wait, limit=limit, progress=progress
                )
            finally:
                self._engine = None

    def interrupt(self) -> None:
        """End what is under way in another thread; nothing of it counts."""
        with suppress(duckdb.Error):  # it may just have ended
            if engine := self._engine:
                engine.interrupt()

    def _months_to_build(self) -> list[Month]:
        """The months with a closed day that no rollup covers."""
        manifest = self._lake.manifest
        return [
            Month(organization, first)
            for organization in manifest.organizations()
            for first in _months_of(self._files_to_count(organization, manifest.live_files(organization)))
        ]

    def _files_to_count(self, organization: str, files: Sequence[LandedFile]) -> list[LandedFile]:
        """The files of closed days that no rollup covers."""
        today, latest = self._clock().date(), datetime.now(UTC) - self._patience  # by the clock that files are dated by
        recently_landed = {file.day for file in files if file.checked_at > latest}
        covered = live_rollups(self._lake, organization, rollup_version(), files).days
        return [file for file in files if file.day < today and file.day not in recently_landed | covered]

    def _build_month(self, engine: duckdb.DuckDBPyConnection, month: Month) -> None:
        files = self._lake.manifest.live_files(*month, month.last)
        added = self._files_to_count(month.organization, files)
        if not added:
            return
        for file in added:
            self._lake.recheck(file)  # what is counted once is believed for long
        before = scope_variables(self._lake, Scope(*month, month.last))
        closed = [file for file in files if file.day in before["closed_days"]]
        rollup = Rollup(*month, rollup_version(), source_files_by_day([*closed, *added]))
        staged = new_path(self._lake)
        try:
            write_rollup(_rollup_rows(engine, self._lake, before, _chunks(added)), rollup_schema(engine), staged)
            publish(self._lake, rollup, staged, self._clock())
        finally:
            staged.unlink(missing_ok=True)


def _months_of(files: Sequence[LandedFile]) -> list[date]:
    return sorted({month_of(file.day) for file in files})


def _chunks(files: Sequence[LandedFile]) -> list[list[LandedFile]]:
    """Files of whole days in chunks of about CHUNK_VISITS each."""
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


def _prepare(engine: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Define the relations in an engine that leaves the machine to queries."""
    engine.execute("SET threads = 1")  # queries want the other cores
    engine.execute("SET GLOBAL parquet_metadata_cache = TRUE")
    define_relations(engine, lake)


def _rollup_rows(
    engine: duckdb.DuckDBPyConnection, lake: Lake, before: Variables, chunks: Sequence[Sequence[LandedFile]]
) -> Iterator[RelationRows]:
    """The rows of every relation, one relation after the other: those stored before, and those of visits in `chunks`.

    Visitors are many, so that daily relations are counted chunk by chunk; what monthly ones tell apart is not.
    """
    set_variables(engine, {**before, "sources": one_source("visits_by_domain")})
    stored = [(STORED_BEFORE, file_lists(lake, []))] if before["closed_days"] else []
    for name in relation_names("daily"):
        counted = [(COUNTED_DAILY, file_lists(lake, chunk)) for chunk in chunks]
        yield _count_relation(engine, name, [*stored, *counted])
    for name in relation_names("monthly"):
        yield _count_relation(engine, name, [(COUNTED_MONTHLY, file_lists(lake, list(chain(*chunks))))])


def _count_relation(
    engine: duckdb.DuckDBPyConnection, relation: str, queries: Sequence[tuple[str, Variables]]
) -> RelationRows:
    """The rows of one relation that queries find, each over some files of visits."""
    found = []
    for sql, files in queries:
        set_variables(engine, {"relation": relation, "files": files})
        found.append(engine.sql(sql).to_arrow_table())
    return RelationRows(relation, found)

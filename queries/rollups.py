"""Cubes made: what the visits of closed days come to is counted ahead, so that no answer over them grows with them.

For which days a cube may be taken is known in data/store/rollups.py; what its rows mean, in the relations.
"""

import calendar
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import chain, groupby
from typing import Final, NamedTuple

import duckdb

from data import Lake, LakeDamaged
from data.errors import Outdated
from data.maintenance.rewriting import rewriting_engine
from data.store.landing import new_path
from data.store.manifest import LandedFile
from data.store.rollups import Cube, Rows, cubes_of, month_of, place, sources_of, write_cube
from queries.prelude import prelude, relations, text_of, version
from queries.scope import Scope
from queries.variables import Variables, file_lists, nothing, of_scope, set_variables

PART_VISITS: Final = 500_000
"""About how many are counted at once; a day that has more is one part."""

Progress = Callable[[int, int], None]
"""Called with the months done so far and the months to do."""


class Month(NamedTuple):
    """One organization's visits of a calendar month, by its first day."""

    organization: str
    first: date

    @property
    def last(self) -> date:
        """Its last day."""
        return self.first.replace(day=calendar.monthrange(self.first.year, self.first.month)[1])


class Cubes:
    """Makes the cubes of one lake."""

    def __init__(
        self, lake: Lake, now: Callable[[], datetime] = lambda: datetime.now(UTC), patience: timedelta = timedelta(0)
    ) -> None:
        """A past day is closed when nothing has landed in it for as long as `patience`."""
        self._lake = lake
        self._now = now
        self._patience = patience
        self._engine: duckdb.DuckDBPyConnection | None = None

    def run(self, wait: bool = True, most: int | None = None, progress: Progress | None = None) -> int:
        """Count closed days that no cube holds, at most so many months; how many months that were.

        Without `wait`, nothing happens while somebody else rewrites. A month with a file that is not what was
        written is left as it is; once the others are done, LakeDamaged is raised for the first one of these.
        """
        work = self._work()
        if not work:
            return 0
        with rewriting_engine(self._lake) as engine:
            try:
                self._engine = engine
                _prepare(engine, self._lake)
                return self._made(engine, work, wait, most, progress)
            finally:
                self._engine = None

    def _made(
        self,
        engine: duckdb.DuckDBPyConnection,
        work: Sequence[Month],
        wait: bool,
        most: int | None,
        progress: Progress | None,
    ) -> int:
        done, damage = 0, None
        for number, month in enumerate(work, 1):
            try:
                with self._lake.rewriting(wait) as is_held, suppress(Outdated):  # then the next run does it
                    if is_held:
                        self._make(engine, month)
                        done += 1
            except (LakeDamaged, duckdb.Error) as error:
                damage = damage or error
            if progress:
                progress(number, len(work))
            if done == most:
                return done
        if damage:
            raise damage
        return done

    def interrupt(self) -> None:
        """End what is under way in another thread; nothing of it counts."""
        with suppress(duckdb.Error):  # it may just have ended
            if engine := self._engine:
                engine.interrupt()

    def _work(self) -> list[Month]:
        """The months with a closed day that no cube holds."""
        manifest = self._lake.manifest
        return [
            Month(organization, first)
            for organization in manifest.organizations()
            for first in _months(self._to_count(organization, manifest.live_files(organization)))
        ]

    def _to_count(self, organization: str, files: Sequence[LandedFile]) -> list[LandedFile]:
        """The files of closed days that no cube holds."""
        today, latest = self._now().date(), datetime.now(UTC) - self._patience  # by the clock that files are dated by
        moved = {file.day for file in files if file.checked_at > latest}
        held = cubes_of(self._lake, organization, version(), files).days
        return [file for file in files if file.day < today and file.day not in moved | held]

    def _make(self, engine: duckdb.DuckDBPyConnection, month: Month) -> None:
        files = self._lake.manifest.live_files(*month, month.last)
        added = self._to_count(month.organization, files)
        if not added:
            return
        for file in added:
            self._lake.recheck(file)  # what is counted once is believed for long
        held = of_scope(self._lake, Scope(*month, month.last))
        closed = [file for file in files if file.day in held["closed_days"]]
        cube = Cube(*month, version(), sources_of([*closed, *added]))
        staged = new_path(self._lake)
        try:
            write_cube(_relations(engine, held, self._lake, _parts(added)), staged)
            place(self._lake, cube, staged, self._now())
        finally:
            staged.unlink(missing_ok=True)


def _months(files: Sequence[LandedFile]) -> list[date]:
    return sorted({month_of(file.day) for file in files})


def _parts(files: Sequence[LandedFile]) -> list[list[LandedFile]]:
    """Files of whole days in parts of about PART_VISITS each."""
    parts: list[list[LandedFile]] = []
    room = 0
    for _, of_day in groupby(sorted(files, key=lambda file: file.day), lambda file: file.day):
        day = list(of_day)
        visits = sum(file.visits for file in day)
        if visits > room:
            parts.append([])
            room = PART_VISITS
        parts[-1] += day
        room -= visits
    return parts


def _prepare(engine: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Define the relations, so that they count every visit for all domains and for its own."""
    set_variables(engine, nothing(lake))
    engine.execute("SET threads = 1")  # queries want the other cores
    engine.execute("SET GLOBAL parquet_metadata_cache = TRUE")
    for statement in [*prelude(), text_of("cube/raw")]:
        engine.execute(statement)


def _relations(
    engine: duckdb.DuckDBPyConnection, held: Variables, lake: Lake, parts: Sequence[Sequence[LandedFile]]
) -> Iterator[Rows]:
    """The rows of every relation, one relation after the other: those held already, and those of visits in `parts`.

    Visitors are many, so that daily relations are counted part by part; what monthly ones tell apart is not.
    """
    set_variables(engine, held)
    steps = [("cube/held", file_lists(lake, []))] if held["closed_days"] else []
    for name in relations("daily"):
        yield _counted(engine, name, [*steps, *(("cube/daily", file_lists(lake, part)) for part in parts)])
    for name in relations("monthly"):
        yield _counted(engine, name, [("cube/monthly", file_lists(lake, list(chain(*parts))))])


def _counted(engine: duckdb.DuckDBPyConnection, relation: str, steps: Sequence[tuple[str, Variables]]) -> Rows:
    """The rows of one relation that statements find in files."""
    found = []
    for sql, files in steps:
        set_variables(engine, {"relation": relation, "open_files": files})
        found.append(engine.sql(text_of(sql)).to_arrow_table())
    return Rows(relation, found)

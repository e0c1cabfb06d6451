"""Compares the signals that an earlier version stored for past days with the signals found now. Changes nothing."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.links.index import LinkIndex
from data.progress import Progress, ignore_progress
from data.signals import BEHAVIOUR_VERSION, CONVICTING, SIGNALS
from data.sql import read_sql
from data.store.engines import limit_memory, rewriting_engine, until_memory_suffices
from data.store.lake import Lake
from data.store.rewriting import readable
from data.tasks.compaction import merged_visits
from data.tasks.judging import judge
from data.tasks.merge_plan import DayMerge, days_to_merge

_PEOPLE: Final = pa.array(["human", "ai_referral"])
_RANGES: Final = (8, 64, 256)
"""The numbers of ranges in which visits are read; if memory runs out, the next number is tried."""


class Judged(NamedTuple):
    """A group of visits: whether they landed as visits by people, and their signals."""

    is_person: bool
    signals: int


class Rejudging(NamedTuple):
    """The number of days to judge again, and counts of their visits by stored (`before`) and new signals (`after`)."""

    days: int
    before: Counter[Judged]
    after: Counter[Judged]

    def by_signal(self) -> list[tuple[str, int, int]]:
        """Return the numbers of visits with each signal before and after, followed by the numbers of visits that landed
        as visits by people but count as bots.
        """

        def visits(counted: Counter[Judged], mask: int, *, of_people: bool = False) -> int:
            return sum(n for one, n in counted.items() if one.signals & mask and (one.is_person or not of_people))

        rows = [(one.name, visits(self.before, one.bit), visits(self.after, one.bit)) for one in SIGNALS]
        bots = [visits(counted, CONVICTING, of_people=True) for counted in (self.before, self.after)]
        return [*rows, ("disguised bots", bots[0], bots[1])]


def compare_judgements(
    lake: Lake,
    organization: str,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Progress = ignore_progress,
) -> Rejudging:
    """Judge again, without storing the results, an organization's days that an earlier version judged; return the
    counts before and after. Raises LakeDamaged.
    """
    merges = [
        merge
        for merge in days_to_merge(lake, now(), timedelta(0), organization, BEHAVIOUR_VERSION)
        if merge.is_past and all(0 < file.behaviour_version < BEHAVIOUR_VERSION for file in merge.files)
    ]
    found = Rejudging(len(merges), Counter(), Counter())
    codes = LinkIndex(lake).links(organization).short_codes.to_pylist()
    with rewriting_engine(lake.staging) as engine:
        for number, merge in enumerate(merges, 1):
            _compare(engine, lake, merge, codes, found)
            progress(number, len(merges))
    return found


def _compare(
    engine: duckdb.DuckDBPyConnection, lake: Lake, merge: DayMerge, codes: list[str], found: Rejudging
) -> None:
    paths = readable(lake, *merge.files)
    stored = engine.execute(read_sql("data.tasks", "sql/stored_signals"), {"files": paths}).fetchall()
    found.before.update({Judged(is_person, signals): visits for is_person, signals, visits in stored})
    limit_memory(engine, sum(file.visits for file in merge.files))
    days = judge(engine, paths, merge.files, codes)
    files = {"files": paths, "outputs": [None, *(0 for _ in merge.files)]}
    of_day = Counter[Judged]()

    def count(ranges: int) -> None:
        of_day.clear()
        for _, visits in merged_visits(engine, files, ranges, days):
            is_person = pc.is_in(visits["bot_category"], _PEOPLE)
            counted = pa.table({"is_person": is_person, "signals": visits["signals"]}).group_by(
                ["is_person", "signals"]
            )
            for row in counted.aggregate([([], "count_all")]).to_pylist():
                of_day[Judged(row["is_person"], row["signals"])] += row["count_all"]

    until_memory_suffices(count, _RANGES)
    found.after.update(of_day)

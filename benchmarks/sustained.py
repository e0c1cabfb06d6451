"""Measures the server while live visits arrive at a high rate for several minutes: backlogs of flushing, compaction and
rollups, and how long cold answers take.

The visits are for all organizations of the largest world, in proportion to their stored visits; separate processes post
them, serve them and send small requests. The server has just started, so if FIRST_HOUR of service/jobs/daily.py has
passed, it also detects the jobs of all organizations; before that hour, it detects none.

Some changes were tried, but not made. Counting an open day when visits are stored: dashboards take an eighth to a
fourteenth of the processor time, but files take 2.5 to 4.8 times the bytes and 9 to 18 times the work to write. One
file per month: reading a link's visits takes an eighth of the time, but retention, erasure, reclassification, manifest
and rollups all assume one file per day. Smaller row groups: 0.73 of the time at 1.29 of the bytes. Two heaps for all
threads: 20 MB less, but dashboards take a seventh longer where threads share a heap. Returning the free memory of heaps
every five seconds: 2 to 25 MB less. A lower limit for the memory in which a merge sorts: erasures exceed it; sorting in
ranges helped instead. Keeping the counts of today until a file of today is added: a dashboard takes 86 ms instead of
131 on an idle server, but here a file is added every five seconds, and other dashboards take up to a fifth longer.
Maintenance at the lower priority that queries have: with four other busy programs, visits wait 1.1 instead of 0.35 s to
be acknowledged, and three times as many are without a file.
"""

import json
import shutil
import sqlite3
import statistics
import subprocess
import time
import urllib.error
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from rich.console import Console

from benchmarks.bars import IDLE, IDLE_AGAIN
from benchmarks.figures import Figure, figure, percentile_99
from benchmarks.importing import LINES
from benchmarks.live import BATCH, reported_bodies
from benchmarks.made import LAST_DAY
from benchmarks.made.lakes import land_organization, settle_copy, shares
from benchmarks.peers import World
from benchmarks.servers import get, program, resident_mb, server
from benchmarks.steady import HEALTH
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from service.access.api_keys import ApiKeys
from service.core.control_database import ControlDatabase
from service.demo.sample import Sample

VISITS_PER_SECOND: Final = 10_000
BODIES: Final = 300
"""Number of different batches, which are posted in rotation."""
KEYS: Final = 1_000
"""Number of API keys that batches use in rotation, drawn in proportion to the organizations' visits."""
IDLE_QUESTIONS: Final = 10
ASK_EVERY_SECONDS: Final = 3.0
PROGRESS_EVERY: Final = 10
"""Number of queries between two progress lines."""
UNCOUNTED: Final = 20
"""Number of other organizations that lose their rollups at the start, so that the server has months to count."""
LARGE_DAY: Final = 20_000_000
"""Number of visits on a past day that the server merges and judges during the run; only in worlds with at least as many
visits."""
_LARGE: Final = "large-day"  # the organization with the large day
_PARTS: Final = 50
_DAYS: Final = f"start_date={WHOLE.start_date}&end_date={WHOLE.end_date}"
_SMALL: Final = (
    *(f"/analytics/{name}?{_DAYS}" for name in ("traffic-overview", "devices", "top-links", "browsers", "referrers")),
    "/openapi.json",
)
"""The small requests, sent in rotation: cached answers and a document."""

_PROGRESS: Final = Console(stderr=True)


@dataclass
class _Samples:
    """Measurements taken during the run."""

    cold: list[float] = field(default_factory=list)  # milliseconds
    refused: int = 0
    memory: list[float] = field(default_factory=list)  # MB
    files: list[float] = field(default_factory=list)  # of today, in the organization with the most
    pending: list[float] = field(default_factory=list)  # visits without a file
    uncounted: list[float] = field(default_factory=list)  # months


def sustained(setting: Setting) -> Iterator[Figure]:
    """Post VISITS_PER_SECOND for the configured minutes to a server of the largest world."""
    world, root = setting.worlds[-1], setting.scratch / "live"
    for one in _sustained(setting, world, root):
        yield replace(one, visits=world.visits)


def _sustained(setting: Setting, world: World, root: Path) -> Iterator[Figure]:
    shutil.copytree(world.lake.root, root)
    lake = Lake(root)
    if world.visits >= LARGE_DAY:
        _land_large_day(lake)
    settle_copy(lake)
    bodies = next(reported_bodies(setting.log(LINES), BATCH, BODIES, setting.scratch))
    keys = _keys(setting, world, lake)
    (setting.scratch / "keys").write_text("\0".join(keys), "ascii")
    with closing(lake.manifest), server(root) as (port, process):
        watch = _Watch(root, port, keys[0], process.pid)
        idle = {IDLE: watch.idle()}
        watch.uncount()
        posting = (port, bodies, setting.scratch / "keys", VISITS_PER_SECOND / BATCH, 60 * setting.minutes)
        with (
            program("benchmarks.steady", port, keys[0], *_SMALL) as steady,
            program("benchmarks.posting", *posting) as poster,
        ):
            print(60 * setting.minutes, file=steady.stdin, flush=True)
            samples = watch.samples(60 * setting.minutes)
            posted, small = (json.loads(_last_line(running)) for running in (poster, steady))
        if posted["refused"]:
            _PROGRESS.print(f"  {len(posted['refused'])} batches were refused, first: {posted['refused'][0]}")
        watch.wait_until_all_is_filed()
        yield from _figures(posted, samples, idle | {IDLE_AGAIN: watch.idle()})
        answers = [took for path, times in small.items() if path not in {HEALTH, "late"} for took in times]
        yield figure("small answers, p99, live", "ms", [percentile_99(answers)])
        yield figure("large days not judged, live, in the end", "days", [watch.large_days_not_judged()])


def _figures(posted: dict[str, list[float]], samples: _Samples, idle: dict[str, list[float]]) -> Iterator[Figure]:
    acknowledged = len(posted["milliseconds"]) * BATCH / posted["seconds"]  # type: ignore[operator]
    yield figure("live visits, acknowledged", "visits/s", [acknowledged])
    yield figure("live batches, refused", "batches", [len(posted["refused"])])
    yield figure("live batches, acknowledged after, p99", "ms", [percentile_99(posted["milliseconds"])])
    yield figure("cold dashboard over HTTP, live", "ms", samples.cold)
    for who, times in idle.items():
        ratio = statistics.median(samples.cold) / statistics.median(times)
        yield replace(figure("cold dashboard over HTTP, live", "ms", times), who=who, ratio=ratio)
    yield figure("cold dashboards refused, live", "answers", [samples.refused])
    yield figure("files of an open day, live, most", "files", [max(samples.files)])
    yield figure("files of an open day, live, in the end", "files", [samples.files[-1]])
    yield figure("visits without a file, live, most", "visits", [max(samples.pending)])
    yield figure("months not counted, live, in the end", "months", [samples.uncounted[-1]])
    yield figure("server memory, live, most", "MB", [max(samples.memory)])
    yield figure("server memory, live, in the end", "MB", [samples.memory[-1]])


class _Watch:
    """Sends cold queries to the server, and monitors its backlogs."""

    def __init__(self, root: Path, port: int, key: str, pid: int) -> None:
        self._manifest, self._port, self._key, self._pid = root / "manifest.sqlite", port, key, pid
        self._questions = 0
        self._counted = self._months()

    def ask(self) -> float:
        """Return the milliseconds that an uncached dashboard up to today takes. Raises HTTPError if it is refused."""
        self._questions += 1
        start, end = WHOLE.start_date - timedelta(days=self._questions), datetime.now(UTC).date()
        begun = time.perf_counter()
        get(self._port, f"/analytics/dashboard?start_date={start}&end_date={end}", self._key)
        return 1000 * (time.perf_counter() - begun)

    def idle(self) -> list[float]:
        """Return the milliseconds that each of IDLE_QUESTIONS dashboards takes while nothing else is requested."""
        return [self.ask() for _ in range(IDLE_QUESTIONS + 1)][1:]

    def wait_until_all_is_filed(self) -> None:
        """Wait until every visit is in a file. Raises SystemExit after two minutes."""
        deadline = time.monotonic() + 120
        while waiting := self._number("SELECT coalesce(sum(visits), 0) FROM pending"):
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"{waiting:,.0f} visits are still without a file two minutes after the last was posted."
                )
            time.sleep(1)

    def uncount(self) -> None:
        """Delete the rollups of UNCOUNTED organizations other than the queried one."""
        with closing(sqlite3.connect(self._manifest)) as db, db:
            db.execute(
                "DELETE FROM rollups WHERE organization IN (SELECT DISTINCT organization FROM rollups "
                "WHERE organization <> ? ORDER BY organization LIMIT ?)",
                [WHOLE.organization, UNCOUNTED],
            )

    def samples(self, seconds: float) -> _Samples:
        """Send a query every ASK_EVERY_SECONDS, for `seconds`; record response times, memory, files and backlogs."""
        samples, begun = _Samples(), time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            try:
                samples.cold.append(self.ask())
            except urllib.error.HTTPError:
                samples.refused += 1
            samples.memory.append(resident_mb(self._pid))
            samples.files.append(self._most_files())
            samples.pending.append(self._number("SELECT coalesce(sum(visits), 0) FROM pending"))
            samples.uncounted.append(self._counted - self._months())
            if len(samples.files) % PROGRESS_EVERY == 0:
                _PROGRESS.print(
                    f"  {now - begun:,.0f} s: cold {statistics.median(samples.cold[-PROGRESS_EVERY:]):,.0f} ms, "
                    f"{samples.files[-1]:g} files of an open day, {samples.pending[-1]:,.0f} visits without a file, "
                    f"{samples.uncounted[-1]:g} months not counted, {samples.memory[-1]:,.0f} MB"
                )
            time.sleep(max(0.0, now + ASK_EVERY_SECONDS - time.monotonic()))
        return samples

    def large_days_not_judged(self) -> float:
        """Return 1 if the large day is waiting to be judged, otherwise 0."""
        return self._number(
            "SELECT count(DISTINCT day) FROM files WHERE organization = ? "
            "AND deletable_at IS NULL AND visits > 0 AND behaviour_version = 0",
            [_LARGE],
        )

    def _most_files(self) -> float:
        """Return the largest number of files that an organization has for today."""
        return self._number(
            "SELECT coalesce(max(files), 0) FROM (SELECT count(*) AS files FROM files "
            "WHERE deletable_at IS NULL AND day = date('now') GROUP BY organization)"
        )

    def _months(self) -> float:
        return self._number("SELECT count(*) FROM rollups WHERE deletable_at IS NULL")

    def _number(self, sql: str, values: Sequence[str] = ()) -> float:
        with closing(sqlite3.connect(self._manifest)) as db:
            ((number,),) = db.execute(sql, values).fetchall()
        return float(number)


def _land_large_day(lake: Lake) -> None:
    """Land about LARGE_DAY visits on one day, for a separate organization."""
    for number in range(_PARTS):
        land_organization(lake, _LARGE, Sample(LARGE_DAY // _PARTS + number, LAST_DAY, 1))


def _keys(setting: Setting, world: World, lake: Lake) -> list[str]:
    """Return KEYS keys for posting, the queried organization's first, the others drawn in proportion to the
    organizations' visits.
    """
    share = shares(world.visits, setting.organizations)
    with closing(ControlDatabase(lake)) as control:
        api_keys = ApiKeys(control)
        keys = {name: api_keys.create_key(name, "bench") for name in share}
    drawn = Random(1).choices(list(share), list(share.values()), k=KEYS - 1)
    return [keys[name] for name in (WHOLE.organization, *drawn)]


def _last_line(running: subprocess.Popen[str]) -> str:
    assert running.stdout
    return running.stdout.readline()

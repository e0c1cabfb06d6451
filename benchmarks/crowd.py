"""How long small answers take while others crowd the server: slow sockets, cold questions, compaction and rollups.

Who asks, who crowds and who serves are processes of their own. Takes about four minutes.
"""

import json
import shutil
import sqlite3
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.bars import QUIET
from benchmarks.figures import OURS, Figure, beside, figure, percentile_99
from benchmarks.importing import LINES
from benchmarks.live import DOMAIN
from benchmarks.made import ORGANIZATION
from benchmarks.made.lakes import settle_copy
from benchmarks.servers import TRAFFIC, key_of, program, server
from benchmarks.steady import HEALTH, Times
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from data.ingest.importer import Importer, Options
from data.tasks.compaction import Compactor

SLOW_SOCKETS: Final = 2_000
COLD_QUESTIONS: Final = 200
FILES_OF_A_DAY: Final = 12
MERGED_DAYS: Final = 60
"""Of 90, from the first on: the server counts these. Days that it merges itself it counts ten minutes later."""
WINDOW_SECONDS: Final = 8
MOST_SECONDS: Final = 140
"""From the start; after that, no further window is measured of what has been measured once."""
GRACE_SECONDS: Final = 60
PAIRS: Final = 3
_DAYS: Final = f"start_date={WHOLE.start_date}&end_date={WHOLE.end_date}"
PATHS: Final = (
    *(f"/analytics/{name}?{_DAYS}" for name in ("traffic-overview", "devices", "top-links", "browsers", "referrers")),
    "/openapi.json",
)
"""The requests sent in turn: cached answers and a document."""

_PROGRESS: Final = Console(stderr=True)


def crowd(setting: Setting) -> Iterator[Figure]:
    """99 of 100 small answers, quiet, in each crowd, and in all of them together."""
    prepared = _lake_to_maintain(setting)
    half, end = (time.monotonic() + part * MOST_SECONDS for part in (0.6, 1))
    with _crowded_server(prepared, setting.scratch / "idle", half, is_compacted=True) as (port, key, steady):
        quiet, slow = [], []
        for _ in range(PAIRS):
            quiet.append(p99_of(steady.measure(WINDOW_SECONDS / 2)))
            with _crowd_of("slow", port, SLOW_SOCKETS):
                slow.append(p99_of(steady.measure(WINDOW_SECONDS / 2)))
        yield figure("small answers, p99, quiet", "ms", quiet)
        yield from beside(f"small answers, p99, {SLOW_SOCKETS:,} slow sockets", "ms", {OURS: slow, QUIET: quiet})
        with _crowd_of("cold", port, COLD_QUESTIONS, key):
            yield from _figures(f"{COLD_QUESTIONS} cold questions", [steady.measure(WINDOW_SECONDS)])
    with _crowded_server(prepared, setting.scratch / "maintained", half) as (_, _, steady):
        yield from _figures("compaction and rollups", steady.measure_maintenance(setting.scratch / "maintained"))
    with _crowded_server(prepared, setting.scratch / "everything", end) as (port, key, steady), ExitStack() as crowds:
        crowds.enter_context(_crowd_of("cold", port, COLD_QUESTIONS, key))
        crowds.enter_context(_crowd_of("slow", port, SLOW_SOCKETS))
        yield from _figures("all together", steady.measure_maintenance(setting.scratch / "everything"))


def _figures(crowd: str, windows: list[Times]) -> Iterator[Figure]:
    pooled: defaultdict[str, list[float]] = defaultdict(list)
    for window in windows:
        for path, times in window.items():
            pooled[path] += times
    yield figure(f"small answers, p99, {crowd}", "ms", [p99_of(pooled)])
    yield figure(f"slowest small answer, {crowd}", "ms", [max(_answers(pooled))])
    yield figure(f"check of health, {crowd}", "ms", pooled[HEALTH])
    yield figure(f"small requests, late by, p99, {crowd}", "ms", [percentile_99(pooled["late"])])


def _answers(times: Times) -> list[float]:
    return [one for path, some in times.items() if path not in {HEALTH, "late"} for one in some]


def p99_of(times: Times) -> float:
    """The milliseconds within which 99 of 100 small answers came."""
    return percentile_99(_answers(times))


class _Steady:
    """The process that asks at a steady rate."""

    def __init__(self, process: subprocess.Popen[str], deadline: float) -> None:
        self._process, self._deadline = process, deadline

    def measure(self, seconds: float) -> Times:
        """Ask for so long."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        times: Times = json.loads(self._process.stdout.readline())
        return times

    def measure_maintenance(self, root: Path) -> list[Times]:
        """Ask until the server has merged all days and counted all months, or the deadline has passed.

        Goes on after it until some are merged and some counted; raises RuntimeError if that takes GRACE_SECONDS.
        """
        windows: list[Times] = []
        before, is_enough = _progress_of(root), False
        while not (is_enough and (_is_done(root) or time.monotonic() > self._deadline)):
            if time.monotonic() > self._deadline + GRACE_SECONDS:
                raise RuntimeError("the server has merged no files or counted no days meanwhile.")
            windows.append(self.measure(WINDOW_SECONDS))
            files, months = _progress_of(root)
            is_enough = files < before[0] and months > before[1]
            _PROGRESS.print(f"  {before[0]:,} files have become {files:,}, months counted: {months}")
        return windows


@contextmanager
def _crowded_server(
    prepared: Path, root: Path, deadline: float, *, is_compacted: bool = False
) -> Iterator[tuple[int, str, _Steady]]:
    """A server over a copy of a lake, and who asks it at a steady rate."""
    shutil.copytree(prepared, root)
    lake = Lake(root)
    settle_copy(lake)
    lake.manifest.close()
    if is_compacted:
        subprocess.run([str(TRAFFIC), "compact", "--lake", str(root)], check=True, capture_output=True)
    key = key_of(root, ORGANIZATION)
    with server(root) as (port, _), program("benchmarks.steady", port, key, *PATHS) as steady:
        yield port, key, _Steady(steady, deadline)


@contextmanager
def _crowd_of(kind: str, port: int, clients: int, *key: str) -> Iterator[None]:
    """So many clients of a kind; how it went for them is printed in the end."""
    with program("benchmarks.crowding", kind, port, clients, *key) as crowd:
        yield
        crowd.terminate()
        assert crowd.stdout
        _PROGRESS.print(f"  {clients:,} {kind} clients: {crowd.stdout.readline().strip()}")


def _lake_to_maintain(setting: Setting) -> Path:
    """A lake with many files for each of its last days, and one for the days before, none counted; kept."""
    root = setting.kept / "lake-to-maintain"
    if not root.exists():
        part = root.with_name("lake-to-maintain.part")
        shutil.rmtree(part, ignore_errors=True)
        lake = Lake(part, create=True)
        importer = Importer(lake)
        with setting.log(LINES).open(encoding="utf-8") as lines:
            for number in range(FILES_OF_A_DAY):
                piece = setting.scratch / f"piece-{number}.log"
                piece.write_text("".join(islice(lines, number, None, FILES_OF_A_DAY)), "utf-8")
                importer.run(piece, Options(ORGANIZATION, DOMAIN))
                lines.seek(0)
                _PROGRESS.print(f"  {number + 1} of {FILES_OF_A_DAY} logs are imported")
        Compactor(lake).run(limit=MERGED_DAYS)
        lake.manifest.close()
        part.rename(root)
    return root


def _progress_of(root: Path) -> tuple[int, int]:
    """Number of live files and of counted months."""
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db:
        ((files,),) = db.execute("SELECT count(*) FROM files WHERE deletable_at IS NULL").fetchall()
        ((months,),) = db.execute("SELECT count(*) FROM rollups").fetchall()
    return files, months


def _is_done(root: Path) -> bool:
    """Whether each day has one file, and days of each month are counted."""
    sql = (
        "SELECT count(*), count(DISTINCT day), count(DISTINCT substr(day, 1, 7)) FROM files WHERE deletable_at IS NULL"
    )
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db:
        ((files, days, months),) = db.execute(sql).fetchall()
    return bool(files == days and _progress_of(root)[1] >= months)

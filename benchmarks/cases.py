"""The cases: each returns figures it measured now, on this machine, over the same made-up visits."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb

from benchmarks.servers import bare, get, key_of, most, resident_mb, server
from data import Lake
from data.importing import Importer, Options
from data.sample import Sample
from queries import ANSWERS, Scope, Warehouse

ORGANIZATION: Final = "bench"
LAST_DAY: Final = date(2026, 10, 31)
DAYS: Final = 90
RUNS: Final = 5
CACHED_REQUESTS: Final = 40_000


@dataclass(frozen=True)
class Figure:
    """One line of the table: the median of some runs, their extremes, and how it stands to its peer."""

    case: str
    unit: str
    median: float
    least: float
    most: float
    peer: str = ""
    ratio: float | None = None


def figure(case: str, unit: str, values: list[float], peer: str = "", peers: list[float] | None = None) -> Figure:
    """Sum runs up; the ratio is the median of run against the peer's run beside it."""
    ratio = statistics.median(mine / theirs for mine, theirs in zip(values, peers, strict=True)) if peers else None
    return Figure(case, unit, statistics.median(values), min(values), max(values), peer, ratio)


def make_log(folder: Path, visits: int) -> Path:
    """The sample as a log file, made once and kept."""
    log = folder / f"sample-{visits}.log"
    if not log.exists():
        folder.mkdir(parents=True, exist_ok=True)
        Sample(visits, LAST_DAY, DAYS).write(log.with_suffix(".part"))
        log.with_suffix(".part").rename(log)
    return log


def importing(log: Path, lakes: Callable[[], Path], visits: int) -> list[Figure]:
    """Lines landed per second, everything durable; beside the time DuckDB needs to split the lines only."""
    mine, theirs = [], []
    for _ in range(RUNS if visits <= 1_000_000 else 1):
        importer = Importer(Lake(lakes(), create=True))
        mine.append(visits / seconds(lambda: importer.run(log, Options(ORGANIZATION))))  # noqa: B023  # called at once
        theirs.append(visits / seconds(lambda: _split_lines(log)))
    return [figure("import", "lines/s", mine, "DuckDB splitting the lines only", theirs)]


def cold(lake: Path) -> list[Figure]:
    """Milliseconds of each answer over all days, cache missed, process and file cache warm; beside one raw count."""
    warehouse = Warehouse(Lake(lake))
    scope = Scope(ORGANIZATION, LAST_DAY - timedelta(days=DAYS - 1), LAST_DAY)
    files = warehouse.variables(scope)["files"]
    raw = duckdb.connect()
    count = "SELECT bot_category, count(*) FROM read_parquet($files) GROUP BY bot_category"
    figures = []
    for name, entry in ANSWERS.items():
        mine, theirs = [], []
        for run in range(RUNS + 1):
            pair = (
                seconds(lambda: warehouse.answer(entry, warehouse.variables(scope))),  # noqa: B023  # called at once
                seconds(lambda: raw.execute(count, {"files": files}).fetchall()),
            )
            if run:  # the first one warms up
                mine.append(1000 * pair[0])
                theirs.append(1000 * pair[1])
        figures.append(figure(f"cold {name}", "ms", mine, "one raw count by category", theirs))
    return figures


def serving(lake: Path, scratch: Path) -> list[Figure]:
    """Start-up, a cold dashboard over HTTP, cached answers per second, and the server's memory afterwards."""
    key = key_of(lake, ORGANIZATION)
    days = f"start_date={LAST_DAY - timedelta(days=DAYS - 1)}&end_date={LAST_DAY}"
    starts, dashboards = [], []
    for _ in range(RUNS):
        begun = time.perf_counter()
        with server(lake) as (port, _):
            get(port, "/healthz", key)
            starts.append(time.perf_counter() - begun)
            dashboards.append(1000 * seconds(lambda: get(port, f"/analytics/dashboard?{days}", key)))
    with server(lake) as (port, process):
        figures = [figure("exec to first 200", "s", starts), figure("cold dashboard over HTTP", "ms", dashboards)]
        for name in ("traffic-overview", "dashboard"):
            path = f"/analytics/{name}?{days}"
            body = scratch / "body.json"
            body.write_bytes(get(port, path, key))
            figures += _cached(name, port, path, key, body)
        figures.append(figure("server memory afterwards", "MB", [resident_mb(process.pid)]))
    return figures


def _cached(name: str, port: int, path: str, key: str, body: Path) -> list[Figure]:
    mine, theirs = [], []
    requests = CACHED_REQUESTS if body.stat().st_size < 10_000 else CACHED_REQUESTS // 4
    with bare(body) as bare_port:
        for run in range(RUNS + 1):
            pair = most(port, path, key, requests), most(bare_port, path, key, requests)
            if run:  # the first one warms up
                mine.append(pair[0]["requests_per_second"])
                theirs.append(pair[1]["requests_per_second"])
    return [figure(f"cached {name}", "requests/s", mine, "bare Starlette route, same bytes", theirs)]


def _split_lines(log: Path) -> None:
    duckdb.execute(
        "SELECT sum(len(string_split(line, '\"'))) FROM read_csv($log, columns = {'line': 'VARCHAR'}, "
        "delim = '\\0', quote = '', escape = '', header = FALSE, auto_detect = FALSE)",
        {"log": str(log)},
    ).fetchall()


def seconds(work: Callable[[], Any]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started

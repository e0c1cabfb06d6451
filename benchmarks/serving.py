"""Measures the server: start-up, cold dashboards over HTTP, cached answers compared with a bare route, and memory."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.bars import BARE
from benchmarks.figures import OURS, RUNS, Figure, beside, figure, in_turn, milliseconds
from benchmarks.peers import World
from benchmarks.servers import bare, get, key_of, most, resident_mb, server
from benchmarks.worlds import WHOLE, Setting

CACHED_REQUESTS: Final = 40_000
_SMALL: Final = 10_000
"""Response size in bytes from which a quarter of CACHED_REQUESTS is enough."""


def serving(setting: Setting) -> Iterator[Figure]:
    """Yield all figures of the case, at every size."""
    for world in setting.worlds:
        key = key_of(world.lake.root, WHOLE.organization)
        starts = figure("exec to first 200", "s", [_first_answer(world, key) for _ in range(RUNS)])
        for one in (starts, *_served(world, key, setting.scratch)):
            yield replace(one, visits=world.visits)


def _first_answer(world: World, key: str) -> float:
    """Return the seconds from the start of the program to its first answer."""
    begun = time.perf_counter()
    with server(world.lake.root) as (port, _):
        get(port, "/healthz", key)
        return time.perf_counter() - begun


def _served(world: World, key: str, scratch: Path) -> Iterator[Figure]:
    with server(world.lake.root) as (port, process):
        colds = [milliseconds(partial(get, port, f"/analytics/dashboard?{_days(run)}", key)) for run in range(RUNS + 1)]
        yield figure("cold dashboard over HTTP", "ms", colds[1:])
        for name in ("traffic-overview", "dashboard"):
            yield from _cached(name, port, key, scratch)
        yield figure("server memory afterwards", "MB", [resident_mb(process.pid)])


def _cached(name: str, port: int, key: str, scratch: Path) -> list[Figure]:
    path, body = f"/analytics/{name}?{_days(0)}", scratch / "body.json"
    body.write_bytes(get(port, path, key))
    requests = CACHED_REQUESTS if body.stat().st_size < _SMALL else CACHED_REQUESTS // 4
    with bare(body) as bare_port:
        samples = in_turn(
            {
                OURS: lambda: most(port, path, key, requests)["requests_per_second"],
                BARE: lambda: most(bare_port, path, key, requests)["requests_per_second"],
            }
        )
    return beside(f"cached {name}", "requests/s", samples)


def _days(earlier: int) -> str:
    """Return query parameters for all days and `earlier` empty days before them, so that the scope is new and not
    cached.
    """
    return f"start_date={WHOLE.start_date - timedelta(days=earlier)}&end_date={WHOLE.end_date}"

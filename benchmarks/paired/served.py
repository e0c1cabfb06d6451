"""Compares servers of the two trees, which run at the same time and are queried alternately."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from statistics import median
from typing import Final
from urllib.parse import urlencode

from benchmarks.figures import seconds
from benchmarks.live import BATCH, reported_bodies
from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.neighbours import HOSTILE, request_of
from benchmarks.paired.programs import dashboard, first_path
from benchmarks.paired.ratios import Comparison
from benchmarks.paired.trial import Address, Side, Trial
from benchmarks.servers import get, key_of, load, program, server

_ASKED: Final = 5
"""Number of requests during an attack; their median counts."""
_CACHED_REQUESTS: Final = 2_500
_BATCHES: Final = 20
_POSTERS: Final = 8
_HOSTILE_REQUESTS: Final = 100
_HOSTILE_CONNECTIONS: Final = 10


def cold(trial: Trial) -> Iterator[Comparison]:
    """Compare the dashboard of all days: uncached over HTTP, and printed by a command."""
    with trial.servers(lambda side: side.lake(trial.log)) as addresses:

        def measure(side: Side, number: int) -> dict[str, float]:
            return _cold("cold dashboard over HTTP", addresses[side.name], number)

        yield from trial.compare("cold dashboard over HTTP", "ms", measure, times=5)
    yield from dashboard(trial)


def filtered(trial: Trial) -> Iterator[Comparison]:
    """Compare the filtered dashboard over HTTP: with a filter, precomputed counts serve only some of its parts."""
    words = {
        "device_type": "mobile",
        "referrer": "www.google.com",
        "path": first_path(trial.log),
        "ai_source": "ChatGPT",
    }
    with trial.servers(lambda side: side.lake(trial.log)) as addresses:

        def measure(side: Side, number: int) -> dict[str, float]:
            taken = dict[str, float]()
            for field, word in words.items():
                taken |= _cold(f"cold dashboard by {field}", addresses[side.name], number, **{field: word})
            return taken

        yield from trial.compare("cold dashboards by a filter", "ms", measure, times=3)


def serving(trial: Trial) -> Iterator[Comparison]:
    """Compare the start of a server, and cached answers, 32 at a time."""

    def start(side: Side, _: int) -> dict[str, float]:
        lake = side.lake(trial.log)

        def first_answer() -> None:
            port, _ = servers.enter_context(server(lake, side.traffic))
            get(port, "/healthz", "")

        with ExitStack() as servers:
            return {"exec to first 200": seconds(first_answer)}

    yield from trial.compare("exec to first 200", "s", start)
    with trial.servers(lambda side: side.lake(trial.log)) as addresses:

        def measure(side: Side, _: int) -> dict[str, float]:
            address, taken = addresses[side.name], dict[str, float]()
            for name in ("traffic-overview", "dashboard"):
                path, measure = f"/analytics/{name}?{_days(0)}", f"cached {name}"
                before = _processor_seconds(address.pid)
                loaded = load(address.port, path, address.key, _CACHED_REQUESTS)
                processors = (_processor_seconds(address.pid) - before) / _CACHED_REQUESTS
                taken |= {measure: 1 / loaded["requests_per_second"], f"{measure}, processors": processors}
            return taken

        yield from trial.compare("cached answers", "ms", measure, times=2)


def sustained(trial: Trial) -> Iterator[Comparison]:
    """Compare posting batches of live visits until all are acknowledged as durable, while earlier batches are flushed
    and merged.
    """
    bodies = next(reported_bodies(trial.log, BATCH, _BATCHES, trial.scratch))
    with trial.servers(lambda side: side.copy_of(side.lake(trial.log))) as addresses:

        def measure(side: Side, _: int) -> dict[str, float]:
            address = addresses[side.name]
            posted = load(address.port, "/visits", address.key, _BATCHES, _POSTERS, bodies)
            return {f"{BATCH:,} live visits": 1 / posted["requests_per_second"]}

        yield from trial.compare("live visits", "ms", measure, times=2)


def fairness(trial: Trial) -> Iterator[Comparison]:
    """Compare the median time of an organization's answers while another requests as many uncached dashboards as it is
    allowed to.

    The 99th percentiles of the unpaired case need more samples than a pair has.
    """
    requests, organizations = trial.scratch / "requests", (ORGANIZATION, HOSTILE)
    lakes = {side.name: side.lake(trial.log, organizations=organizations) for side in trial.sides}
    keys = {side.name: key_of(lakes[side.name], HOSTILE, side.traffic) for side in trial.sides}
    with trial.servers(lambda side: lakes[side.name]) as addresses:

        def measure(side: Side, number: int) -> dict[str, float]:
            address, header = addresses[side.name], f"Authorization: Bearer {keys[side.name]}"
            days = (_days(number * _HOSTILE_REQUESTS + one) for one in range(_HOSTILE_REQUESTS))
            requests.write_bytes(b"\0".join(request_of(f"GET /analytics/dashboard?{one}", header) for one in days))
            with program("benchmarks.hostile", address.port, 1, 1, requests, _HOSTILE_CONNECTIONS):
                answers = (_cold("", address, number * _ASKED + asked)[""] for asked in range(_ASKED))
                return {"cold dashboard beside another's": median(answers)}

        yield from trial.compare("fairness", "ms", measure)


def _cold(name: str, address: Address, number: int, **filters: str) -> dict[str, float]:
    """Return the elapsed seconds and the CPU time for an uncached dashboard, with different days for each number."""
    path = f"/analytics/dashboard?{_days(number + 1)}&{urlencode(filters)}"
    before = _processor_seconds(address.pid)
    taken = seconds(partial(get, address.port, path, address.key))
    return {name: taken, f"{name}, processors": _processor_seconds(address.pid) - before}


def _processor_seconds(pid: int) -> float:
    """Return the CPU time used by all threads of a process, in seconds, from its CPU-time clock in Linux."""
    return time.clock_gettime((~pid << 3) | 2)


def _days(earlier: int) -> str:
    """Return query parameters for all days with visits and `earlier` empty days before them: a new scope each time,
    which is not cached.
    """
    return urlencode({"start_date": LAST_DAY - timedelta(DAYS - 1 + earlier), "end_date": LAST_DAY})

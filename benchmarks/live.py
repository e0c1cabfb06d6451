"""Measures the intake of live visits."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import OURS, RUNS, Figure, beside, figure, in_turn
from benchmarks.importing import LINES
from benchmarks.made import ORGANIZATION
from benchmarks.servers import get, key_of, load, server
from benchmarks.worlds import Setting
from data import Lake

SINGLE_REQUESTS: Final = 10_000
SINGLE_CONNECTIONS: Final = 50
BATCH: Final = 1_000
BATCH_REQUESTS: Final = 150
BATCH_CONNECTIONS: Final = 8
DOMAIN: Final = "go.example.com"
_LINE: Final = re.compile(r'(\S+) - - \[[^]]*\] "(\S+) (\S+) [^"]*" (\d+) \d+ "([^"]*)" "([^"]*)"')


def intake(setting: Setting) -> Iterator[Figure]:
    """Measure visits acknowledged as durable, one by one and in batches, and the delay until a query counts them."""
    log, scratch = setting.log(LINES), setting.scratch
    empty = scratch / "empty"
    empty.write_bytes(b"\n")
    lake = scratch / "live"
    Lake(lake, create=True).manifest.close()
    key = key_of(lake, ORGANIZATION)
    with server(lake) as (port, _):
        ones, thousands = (
            reported_bodies(log, 1, SINGLE_REQUESTS, scratch),
            reported_bodies(log, BATCH, BATCH_REQUESTS, scratch),
        )

        def singles(bodies: Path) -> float:
            return load(port, "/visits", key, SINGLE_REQUESTS, SINGLE_CONNECTIONS, bodies)["requests_per_second"]

        def batches() -> float:
            many = load(port, "/visits", key, BATCH_REQUESTS, BATCH_CONNECTIONS, next(thousands))
            return BATCH * many["requests_per_second"]

        samples = in_turn({OURS: lambda: singles(next(ones)), "empty POST": lambda: singles(empty)})
        yield from beside("single visits, durable", "requests/s", samples)
        yield from beside(f"visits in batches of {BATCH:,}, durable", "visits/s", in_turn({OURS: batches}))
        seen = [_seconds_until_seen(port, key, scratch) for _ in range(RUNS)]
        yield figure("acknowledged until seen by a cold query", "s", seen)


def reported_bodies(log: Path, size: int, requests: int, scratch: Path) -> Iterator[Path]:
    """Write `requests` bodies, separated by NUL, to a file, and yield its path; repeat until the log ends. A body has
    `size` visits as JSON lines, from lines of the log that no other body uses.
    """
    path = scratch / f"bodies-{size}"
    with log.open(encoding="utf-8") as lines:
        rows = (json.dumps(row) for row in _reported(lines))
        while bodies := [body for _ in range(requests) if (body := "\n".join(islice(rows, size)))]:
            path.write_text("\0".join(bodies), "utf-8")
            yield path


def _reported(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the requests in a log as a server would report them, without their times."""
    for line in lines:
        match = _LINE.match(line)
        if match:
            ip, method, url, status, referrer, user_agent = match.groups()
            yield {"ip": ip, "method": method, "url": url, "domain": DOMAIN, "status": int(status),
                   "referrer": referrer.removeprefix("-"), "user_agent": user_agent}  # fmt: skip


def _seconds_until_seen(port: int, key: str, scratch: Path) -> float:
    """Return the seconds from the acknowledgement of a visit until a cold answer counts it."""
    name = f"seen-{time.time_ns()}"
    body = scratch / "seen"
    body.write_text(json.dumps({"url": f"/{name}", "user_agent": "curl/8.0"}))
    load(port, "/visits", key, 1, 1, body)
    begun = time.perf_counter()
    today = datetime.now(UTC).date()
    for back in range(30_000):  # each start day is a new scope, which is not cached
        scope = f"short_code={name}&start_date={today - timedelta(days=back)}&end_date={today}"
        if json.loads(get(port, f"/analytics/traffic-overview?{scope}", key))["total_visits"]:
            break
        time.sleep(0.2)
    return time.perf_counter() - begun

"""The cases of live intake, and of the manifest between a query and its files."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.cases import DAYS, LAST_DAY, ORGANIZATION, RUNS, Figure, figure, seconds
from benchmarks.servers import get, key_of, load, server
from data import Lake
from data.importing import Importer, Options
from queries import ANSWERS, Scope, Warehouse

SINGLE_REQUESTS: Final = 10_000
SINGLE_CONNECTIONS: Final = 50
BATCH: Final = 1_000
BATCH_REQUESTS: Final = 150
BATCH_CONNECTIONS: Final = 8
FILES: Final = (90, 1_000)
_LINE: Final = re.compile(r'(\S+):\d+ (\S+) - - \[[^]]*\] "(\S+) (\S+) [^"]*" (\d+) \d+ "([^"]*)" "([^"]*)"')


def intake(log: Path, scratch: Path) -> list[Figure]:
    """Visits acknowledged as durable, one by one and in batches, and how soon a query sees them."""
    empty = scratch / "empty"
    empty.write_bytes(b"\n")
    lake = scratch / "live"
    Lake(lake, create=True).manifest.close()
    key = key_of(lake, ORGANIZATION)
    single, nothing, batches = [], [], []
    with server(lake) as (port, _):
        ones, thousands = _bodies(log, 1, SINGLE_REQUESTS, scratch), _bodies(log, BATCH, BATCH_REQUESTS, scratch)
        for run in range(RUNS + 1):
            pair = [
                load(port, "/visits", key, SINGLE_REQUESTS, SINGLE_CONNECTIONS, body)["requests_per_second"]
                for body in (next(ones), empty)
            ]
            many = load(port, "/visits", key, BATCH_REQUESTS, BATCH_CONNECTIONS, next(thousands))
            if run:  # the first one warms up
                single.append(pair[0])
                nothing.append(pair[1])
                batches.append(BATCH * many["requests_per_second"])
        seen = [_seconds_until_seen(port, key, scratch) for _ in range(RUNS)]
    return [
        figure("single visits, durable", "requests/s", single, "empty POST", nothing),
        figure(f"visits in batches of {BATCH:,}, durable", "visits/s", batches),
        figure("acknowledged until seen by a cold query", "s", seen),
    ]


def manifest(log: Path, scratch: Path) -> list[Figure]:
    """A cold answer whose files the manifest names, beside the same answer over a list that is known."""
    figures = []
    for files in FILES:
        lake = Lake(scratch / f"files-{files}", create=True)
        importer = Importer(lake)
        with log.open(encoding="utf-8") as lines:
            for number in range(files // DAYS):
                part = scratch / f"part-{files}-{number}.log"
                part.write_text("".join(islice(lines, number, None, 1_000_000 // 20_000)), "utf-8")
                importer.run(part, Options(ORGANIZATION))
                lines.seek(0)
        figures.append(_through_the_manifest(lake))
    return figures


def _through_the_manifest(lake: Lake) -> Figure:
    warehouse = Warehouse(lake)
    scope = Scope(ORGANIZATION, LAST_DAY - timedelta(days=DAYS - 1), LAST_DAY)
    entry, known = ANSWERS["traffic-overview"], warehouse.variables(scope)
    mine, theirs = [], []
    for run in range(5 * RUNS + 1):
        pair = (
            seconds(lambda: warehouse.answer(entry, warehouse.variables(scope))),
            seconds(lambda: warehouse.answer(entry, known)),
        )
        if run:  # the first one warms up
            mine.append(1000 * pair[0])
            theirs.append(1000 * pair[1])
    files = len(known["files"]) - 1
    return figure(f"traffic-overview through the manifest, {files:,} files", "ms", mine, "plain list of files", theirs)


def _bodies(log: Path, size: int, requests: int, scratch: Path) -> Iterator[Path]:
    """Files of as many bodies, parted by NUL, each of `size` visits as lines of JSON; no visit comes twice."""
    path = scratch / f"bodies-{size}"
    with log.open(encoding="utf-8") as lines:
        rows = (json.dumps(row) for row in _reported(lines))
        while bodies := [body for _ in range(requests) if (body := "\n".join(islice(rows, size)))]:
            path.write_text("\0".join(bodies), "utf-8")
            yield path


def _reported(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """What a server would report of the requests in a log, as they happen now."""
    for line in lines:
        found = _LINE.match(line)
        if found:
            domain, ip, method, url, status, referrer, user_agent = found.groups()
            yield {"ip": ip, "method": method, "url": url, "domain": domain, "status": int(status),
                   "referrer": referrer.removeprefix("-"), "user_agent": user_agent}  # fmt: skip


def _seconds_until_seen(port: int, key: str, scratch: Path) -> float:
    """How long after its acknowledgement a visit is in a cold answer."""
    name = f"seen-{time.time_ns()}"
    body = scratch / "seen"
    body.write_text(json.dumps({"url": f"/{name}", "user_agent": "curl/8.0"}))
    load(port, "/visits", key, 1, 1, body)
    begun = time.perf_counter()
    today = datetime.now(UTC).date()
    for back in range(30_000):  # each start makes another scope, which no cache holds
        scope = f"short_code={name}&start_date={today - timedelta(days=back)}&end_date={today}"
        if json.loads(get(port, f"/analytics/traffic-overview?{scope}", key))["total_visits"]:
            break
        time.sleep(0.2)
    return time.perf_counter() - begun

"""Measures an organization's response times while another sends as many requests of one kind as it is allowed to."""

import json
import shutil
import subprocess
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.bars import QUIET
from benchmarks.figures import OURS, Figure, beside, figure, percentile_99
from benchmarks.made import DAYS, LAST_DAY
from benchmarks.made.lakes import land_organization, settle_copy
from benchmarks.servers import TRAFFIC, get, key_of, program, resident_mb, server
from benchmarks.steady import HEALTH
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from data.links.links import change_links, new_link
from service.access.sessions import SessionStore
from service.core.clock import utc_now
from service.core.control_database import ControlDatabase
from service.dashboard.shares import ShareStore
from service.demo.sample import Sample

HOSTILE: Final = "hostile"
NEIGHBOUR: Final = "neighbour"
LINKS: Final = 500_000
SOURCES: Final = (1, 10)
QUIET_SECONDS: Final = 4
HOSTILE_SECONDS: Final = 10
PAUSE_SECONDS: Final = 0.4
"""Pause between the neighbour's uncached queries."""
MOST_SECONDS: Final = 30
"""Seconds after which a query counts as unanswered."""
REQUESTS: Final = 600
PATHS: Final = tuple(
    f"/analytics/{name}?start_date={WHOLE.start_date}&end_date={WHOLE.end_date}"
    for name in ("traffic-overview", "devices", "top-links", "browsers", "dashboard")
)
"""The neighbour's cached queries."""

_PROGRESS: Final = Console(stderr=True)


@dataclass(frozen=True)
class Secrets:
    """The credentials of each side."""

    key: str
    hostile_key: str
    cookie: str
    share: str
    """One of the neighbour's shares."""
    approved_jobs: tuple[str, ...] = ()
    """The hostile organization's jobs that accept redirects."""
    writer_keys: tuple[str, ...] = ()
    """Keys of other organizations that create jobs."""


@dataclass
class _Times:
    """The neighbour's response times in ms, and how many of its uncached queries were refused or not answered."""

    cached: list[float] = field(default_factory=list)
    uncached: list[float] = field(default_factory=list)
    unanswered: int = 0


def neighbours(setting: Setting) -> Iterator[Figure]:
    """Measure the neighbour's cached and uncached answers, alone and during each attack, from 1 or 10 sources."""
    root = setting.scratch / "neighbours"
    shutil.copytree(lake_of_two(setting), root)
    secrets = secrets_of(root)
    questions, sources = count(1), count(1, max(SOURCES))
    with server(root) as (port, process), program("benchmarks.steady", port, secrets.key, *PATHS) as steady:
        for name, request in _attacks(secrets).items():
            file = setting.scratch / "requests"
            file.write_bytes(b"\0".join(request(number) for number in range(REQUESTS)))
            for many in SOURCES:
                quiet = _times(steady, port, secrets.key, questions, QUIET_SECONDS)
                with program("benchmarks.hostile", port, next(sources), many, file) as crowd:
                    beset = _times(steady, port, secrets.key, questions, HOSTILE_SECONDS)
                    crowd.terminate()
                    _PROGRESS.print(f"  {name}, {many}: {crowd.stdout.readline().strip() if crowd.stdout else ''}")
                yield from _figures(f"{name}, sources: {many}", quiet, beset)
        yield figure("server memory, beset", "MB", [resident_mb(process.pid)])


def _figures(case: str, quiet: _Times, beset: _Times) -> Iterator[Figure]:
    worst = {OURS: [percentile_99(beset.cached)], QUIET: [percentile_99(quiet.cached)]}
    yield from beside(f"another's cached, p99, {case}", "ms", worst)
    median = sorted(quiet.uncached)[len(quiet.uncached) // 2]  # each answer during the attack is compared with it
    as_many = [median] * len(beset.uncached)
    yield from beside(f"another's uncached, {case}", "ms", {OURS: beset.uncached, QUIET: as_many})
    yield figure(f"another's unanswered, {case}", "questions", [beset.unanswered])


def _times(steady: subprocess.Popen[str], port: int, key: str, questions: Iterator[int], seconds: float) -> _Times:
    """Measure the neighbour's answers for `seconds`, and until its last request is answered."""
    assert steady.stdin
    assert steady.stdout
    times, end = _Times(), time.monotonic() + seconds
    steady.stdin.write(f"{seconds}\n")
    steady.stdin.flush()
    while time.monotonic() < end:
        started = time.perf_counter()
        day = WHOLE.start_date - timedelta(next(questions))
        try:
            get(port, f"/analytics/dashboard?start_date={day}&end_date={WHOLE.end_date}", key, MOST_SECONDS)
        except (TimeoutError, urllib.error.URLError):
            times.unanswered += 1
        times.uncached.append(1000 * (time.perf_counter() - started))
        time.sleep(PAUSE_SECONDS)
    cached: dict[str, list[float]] = json.loads(steady.stdout.readline())
    times.cached = [one for path, some in cached.items() if path not in {HEALTH, "late"} for one in some]
    return times


def _attacks(secrets: Secrets) -> dict[str, Callable[[int], bytes]]:
    """Return the attacks by name, each as a function from a number to a request without its source address."""
    key, cookie = f"Authorization: Bearer {secrets.hostile_key}", f"Cookie: traffic={secrets.cookie}"

    def tool(name: str, arguments: dict[str, str]) -> bytes:
        call = {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return request_of("POST /mcp", key, json.dumps({"jsonrpc": "2.0", "id": 1, **call}))

    return {
        "pages": lambda number: request_of(f"GET /app/?{_days(number)}", cookie),
        "dashboards": lambda number: request_of(f"GET /analytics/dashboard?{_days(number)}", key),
        "CSV": lambda number: request_of(f"GET /app/export/bot-traffic.csv?{_days(number)}", cookie),
        "MCP query": lambda number: tool(
            "query", {"endpoint": "dashboard", **dict(part.split("=") for part in _days(number).split("&"))}
        ),
        "MCP links": lambda _: tool("links", {}),
        "PUT of links": lambda number: request_of(
            f"PUT /links/go.example.com/put{number}", key, json.dumps({"target_url": f"https://example.com/{number}"})
        ),
        "a share": lambda _: request_of(f"GET /app/share/{secrets.share}", "Accept: text/html"),
    }


def request_of(line: str, header: str, body: str = "") -> bytes:
    """Return the bytes of a request, without its source address."""
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n{length}\r\n{body}".encode()


def _days(number: int) -> str:
    """Return a period of one to three months, different for each number."""
    end = LAST_DAY - timedelta(number // 60)
    return f"start_date={end - timedelta(30 + number % 60)}&end_date={end}"


def lake_of_two(setting: Setting) -> Path:
    """Return the folder of a kept lake of two organizations, each with half of the smallest size's visits. The hostile
    organization also has LINKS links.
    """
    root = setting.kept / f"lake-neighbours-{setting.sizes[0]}"
    lake = Lake(root, create=True)
    with closing(lake.manifest):
        for name in (HOSTILE, NEIGHBOUR):
            land_organization(lake, name, Sample(setting.sizes[0] // 2, LAST_DAY, DAYS))
        now = utc_now()
        many = [new_link(f"code{number}", "", f"https://example.com/target/{number}", now) for number in range(LINKS)]
        change_links(lake, HOSTILE, many, now)
    subprocess.run([str(TRAFFIC), "compact", "--lake", str(root)], check=True, capture_output=True)
    return root


def secrets_of(root: Path) -> Secrets:
    """Create and return keys, a session and a share in a copy of the lake of two organizations."""
    lake = Lake(root)
    settle_copy(lake)
    key, hostile_key = (key_of(root, name) for name in (NEIGHBOUR, HOSTILE))
    with closing(lake.manifest), closing(ControlDatabase(lake)) as control:
        sessions, shares = SessionStore(control), ShareStore(control)
        opened = sessions.open_by_link(sessions.create_link(HOSTILE))
        assert opened
        days = {"start_date": str(WHOLE.start_date), "end_date": str(WHOLE.end_date)}
        share = shares.create(NEIGHBOUR, "somebody", {"name": "share", **days})
        return Secrets(key, hostile_key, opened.secret, share)

"""The served whole: start-up, cold dashboards over HTTP, cached answers beside a bare route and beside themselves
while receivers of hooks hang, and memory.
"""

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.bars import BARE, WITHOUT_HOOKS
from benchmarks.figures import OURS, RUNS, Figure, beside, figure, in_turn, milliseconds
from benchmarks.peers import World
from benchmarks.servers import bare, get, key_of, most, resident_mb, server
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from service.core.clock import to_text
from service.core.control_database import ControlDatabase
from service.core.setting_values import parse_networks
from service.hooks.registry import Hooks
from service.jobs.manual import manual_job
from service.jobs.records import COMMAND_LINE
from service.jobs.states import APPROVE_FIX
from service.jobs.store import Jobs

CACHED_REQUESTS: Final = 40_000
HANGING_HOOKS: Final = 20
_LOOPBACK: Final = "127.0.0.0/8"
_SMALL: Final = 10_000
"""Bytes; of larger answers a quarter of the requests is enough."""


def serving(setting: Setting) -> Iterator[Figure]:
    """All of it at every size."""
    for world in setting.worlds:
        key = key_of(world.lake.root, WHOLE.organization)
        starts = figure("exec to first 200", "s", [_first_answer(world, key) for _ in range(RUNS)])
        for one in (starts, *_served(world, key, setting.scratch)):
            yield replace(one, visits=world.visits)


def _first_answer(world: World, key: str) -> float:
    """Seconds from the start of the program to its first answer."""
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


def hanging_hooks(setting: Setting) -> Iterator[Figure]:
    """Cached answers while messages for receivers that never answer are under way, beside a server without hooks."""
    world, hanging = setting.worlds[0], setting.scratch / "lake-with-hooks"
    shutil.copytree(world.lake.root, hanging)
    path, keys = f"/analytics/traffic-overview?{_days(0)}", [key_of(world.lake.root, WHOLE.organization)]
    keys.append(key_of(hanging, WHOLE.organization))
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1_000) as receiver,
        _hooks_and_jobs(hanging, f"http://127.0.0.1:{receiver.getsockname()[1]}/") as hooks,
        server(hanging, TRAFFIC_HOOK_NETWORKS=_LOOPBACK) as (port, _),
        server(world.lake.root) as (port_without, _),
    ):
        samples = in_turn(
            {
                OURS: lambda: most(port, path, keys[1], CACHED_REQUESTS)["requests_per_second"],
                WITHOUT_HOOKS: lambda: most(port_without, path, keys[0], CACHED_REQUESTS)["requests_per_second"],
            }
        )
        _check_under_way(hooks)
    yield from beside("cached traffic-overview, hooks hang", "requests/s", samples, world.visits)


@contextmanager
def _hooks_and_jobs(root: Path, url: str) -> Iterator[Hooks]:
    """Hooks, and as many approved jobs: each hook has a message of each job to be sent."""
    lake, now = Lake(root), datetime.now(UTC)
    with closing(lake.manifest), closing(ControlDatabase(lake)) as control:
        hooks, jobs = Hooks(control, parse_networks(_LOOPBACK)), Jobs(control)
        for number in range(HANGING_HOOKS):
            hooks.create(WHOLE.organization, f"hook {number}", url)
        for number in range(HANGING_HOOKS):
            job = jobs.create(
                manual_job(WHOLE.organization, f"job {number}", "Do it.", COMMAND_LINE, now), COMMAND_LINE, now
            )
            jobs.act(WHOLE.organization, job.id, APPROVE_FIX, COMMAND_LINE, now)
        yield hooks


def _check_under_way(hooks: Hooks) -> None:
    """Raises RuntimeError unless attempts have failed because nobody answered, and others are under way."""
    rows = hooks.database.rows(
        "SELECT count(*) FILTER (WHERE attempts > 0), count(*) FILTER (WHERE claimed_until > ?), "
        "group_concat(DISTINCT error) FROM deliveries",
        [to_text(datetime.now(UTC))],
    )
    failed, claimed, errors = rows[0]
    if not failed or not claimed or errors != "timed_out":
        raise RuntimeError(f"{failed} deliveries failed ({errors}), {claimed} are under way.")


def _days(earlier: int) -> str:
    """The whole scope, from some days without visits on: another scope, which no cache holds yet."""
    return f"start_date={WHOLE.start_date - timedelta(days=earlier)}&end_date={WHOLE.end_date}"

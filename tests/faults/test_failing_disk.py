"""Whatever its disk does, a server answers queries and loses no acknowledged visit (P18).

While the disk is full or failing, it rejects writes; while another process holds a lock or the disk stalls, only writes
wait: each query is answered while a write is still waiting. `TRAFFIC_FAULTS=all` repeats this for 15 seconds and checks
the promised response times, which requires an idle machine.
"""

import asyncio
import errno
import re
import resource
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from data.ingest.live import LiveIngest
from service.access.api_keys import ApiKeys
from service.ops.maintenance import Maintenance
from tests.cluster.processes import wait_until
from tests.faults.lakes import PER_BATCH, assert_no_address, assert_sound, batches, report
from tests.faults.servers import serving
from tests.faults.tracing import traced
from tests.faults.trials import IS_LONG, P99_SECONDS, p99, scaled
from tests.faults.victims import nothing
from tests.support import identity
from tests.support.control import open_store
from tests.support.lakes import opened
from tests.support.visits import land, visit

REPORTS = scaled(5, 200)


@contextmanager
def limited(server, folder):
    """Limit the server's files to one page while in this context: enough for its log, but not for its databases."""
    resource.prlimit(server.child.process, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    yield
    resource.prlimit(server.child.process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def injected(calls, what):
    """Return a context manager that makes some system calls of a server fail or wait."""
    expressions = ("-e", f"trace={calls}", "-e", f"inject={calls}:{what}")
    return lambda server, folder: traced(server, folder / "trace", *expressions)


WAYS = {
    "no file may grow": (limited, {503}),
    "no space for databases": (injected("pwrite64", "error=ENOSPC"), {503}),
    "databases are not synced": (injected("fdatasync", "error=EIO"), {503}),
    "files are not synced or moved": (injected("fsync,rename", "error=EIO"), {202}),
}


def test_a_server_with_a_failing_disk_serves_reads_and_recovers(program, traceable, tell, tmp_path):
    """The failures happen one after another, so that each meets the leftovers of the previous one."""
    nothing(tmp_path)
    answers = {}

    def kept():
        return sum(status == 202 for status in answers.values()) * PER_BATCH

    with serving(program, tmp_path) as server:
        for way, (disturbed, statuses) in WAYS.items():
            answers[f"before {way}"] = server.report(f"before {way}").status
            wait_until(lambda: server.total() == kept(), 60)
            before = kept()
            answers[f"waiting {way}"] = server.report(f"waiting {way}").status  # may wait for its file
            with disturbed(server, tmp_path):
                during = [f"during {way} {number}" for number in range(REPORTS)]
                for name in during:
                    answers[name] = server.report(name).status
                    assert server.total() in (before, before + PER_BATCH)
                time.sleep(2.5)  # its background work fails, too
                assert server.total() in (before, before + PER_BATCH)
            assert {answers[name] for name in during} == statuses, way
            answers[f"after {way}"] = server.report(f"after {way}").status
            wait_until(lambda: server.total() == kept(), 60)
    assert {status for name, status in answers.items() if not name.startswith("during")} == {202}
    taken = [name for name, status in answers.items() if status == 202]
    with opened(tmp_path / "lake") as lake:
        found = batches(lake)
        assert_sound(lake)
    assert found == dict.fromkeys(taken, PER_BATCH)
    assert_no_address(tmp_path, server.child.told.read_text())
    tell(reports=len(answers), refused=len(answers) - len(taken), lost=0, doubled=0, failed_reads=0)


def test_only_commands_that_write_fail_on_a_full_disk(program, tmp_path):
    nothing(tmp_path)
    with opened(tmp_path / "lake") as lake:
        land(lake, "acme", [visit()])
    for words in (("query", "traffic-overview", "--org", "acme"), ("status",), ("verify",)):
        run = program.run(tmp_path, "limited", 8192, "traffic", *words, "--lake", "lake")
        assert run.code == 0, run.told
    run = program.run(tmp_path, "limited", 8192, "traffic", "compact", "--lake", "lake")
    assert run.code == 1
    assert re.search(r"manifest\.sqlite cannot be used: the disk is full or failing \(.*\); free space", run.told)


async def test_background_work_continues_if_logging_fails(lake, control, monkeypatch):
    flushes = []

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(_):
        flushes.append(time.monotonic())
        full(_)

    report(LiveIngest(lake), "waiting")
    monkeypatch.setattr("service.ops.maintenance.START_DELAY_SECONDS", 0.0)
    monkeypatch.setattr("service.ops.maintenance.flush_all", flush)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(write=full))
    upkeep = Maintenance(lake, control, lambda: datetime.now(UTC) + timedelta(minutes=1))
    upkeep.begin()
    async with asyncio.timeout(60):
        while len(flushes) < 2:
            await asyncio.sleep(0.1)
    for task in upkeep._running:
        task.cancel()
    await asyncio.gather(*upkeep._running, return_exceptions=True)


# Slow writes

CACHED = "/analytics/devices"
PROMISED = (CACHED, "/openapi.json", "/healthz")
SECONDS = 15 if IS_LONG else 0
FOREVER = 600_000_000
"""Microseconds; longer than any test takes."""


@contextmanager
def locked(_, folder):
    """Hold the write locks of both databases while in this context, outside the server's process."""
    with ExitStack() as stack:
        for name in ("control.sqlite", "manifest.sqlite"):
            database = sqlite3.connect(folder / "lake" / name, isolation_level=None, timeout=60)
            stack.enter_context(closing(database)).execute("BEGIN IMMEDIATE")
        yield


def answered(servers, manager):
    """Return the seconds that each request for a PROMISED response took; each server is called with a different key."""
    took, begun = [], time.monotonic()
    for number, server in enumerate(servers, 1):
        end = begun + SECONDS * number / len(servers)
        while True:
            assert server.ask("GET", "/jobs").status == 200
            assert manager.ask("GET", "/settings/api-keys").status == 200
            for path in PROMISED:
                asked_at = time.perf_counter()
                assert server.ask("GET", path).status == 200
                took.append(time.perf_counter() - asked_at)
            if time.monotonic() >= end:
                break
    return took


WRITES = (("/settings/api-keys", b'{"name": "late"}'), ("/visits", b'{"path": "/late"}'))


@pytest.mark.parametrize(
    "slow", [locked, injected("fsync,fdatasync", f"delay_enter={FOREVER}")], ids=["locked", "stalled"]
)
def test_only_writers_wait_for_a_lock_or_a_stalled_disk(slow, program, traceable, tell, tmp_path):
    nothing(tmp_path)
    settings = identity.settings_of(tmp_path)
    with (
        serving(program, tmp_path, **settings) as server,
        ThreadPoolExecutor(len(WRITES)) as writers,
        opened(tmp_path / "lake") as lake,
        open_store(ApiKeys, lake) as stored,
    ):
        keys = [stored.create_key("acme", f"key {key}") for key in range(scaled(3, 10))]  # unknown to every server
        manager = server._replace(key=identity.token())
        assert server.report("early").status == 202
        assert server.ask("GET", CACHED).status == 200
        before = answered([server] * IS_LONG, manager)
        with slow(server, tmp_path):
            waiting = [writers.submit(manager.ask, "POST", *write) for write in WRITES]
            during = answered([server._replace(key=key) for key in keys], manager)
            assert [write for write in waiting if write.done()] == []
        assert {write.result().status for write in waiting} <= {201, 202}
        wait_until(lambda: {key[:12] for key in keys} <= {key.id for key in stored.all_keys() if key.last_used_at}, 60)
    figures = {"p99": p99(during), "slowest": max(during)} | ({"p99_undisturbed": p99(before)} if before else {})
    tell(answers=len(during), **{f"milliseconds_{name}": round(1000 * value, 1) for name, value in figures.items()})
    assert not IS_LONG or p99(during) <= P99_SECONDS

"""A write that waits, for another process's lock or for a disk that stalls, stops nobody but who sent it (P18).

Each request below is answered while the write still waits. `TRAFFIC_FAULTS=all` goes on asking for 15 seconds of it,
and holds the times of the answers to their promise, which wants a machine that does nothing else meanwhile.
"""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest

from service.api_keys import ApiKeys
from tests.cluster.processes import wait_until
from tests.faults.servers import serving
from tests.faults.tracing import traced
from tests.faults.trials import IS_LONG, P99_SECONDS, p99, scaled
from tests.faults.victims import nothing
from tests.support import identity
from tests.support.control import open_store
from tests.support.lakes import opened

CACHED = "/analytics/devices"
PROMISED = (CACHED, "/openapi.json", "/healthz")
SECONDS = 15 if IS_LONG else 0
FOREVER = 600_000_000
"""Microseconds: longer than any test."""


@contextmanager
def locked(_, folder):
    """Another process holds the write locks of both databases."""
    with ExitStack() as stack:
        for name in ("control.sqlite", "manifest.sqlite"):
            database = sqlite3.connect(folder / "lake" / name, isolation_level=None, timeout=60)
            stack.enter_context(closing(database)).execute("BEGIN IMMEDIATE")
        yield


def stalled(server, folder):
    """The disk does not finish to sync anything."""
    syncs = "fsync,fdatasync"
    return traced(server, folder / "trace", "-e", f"trace={syncs}", "-e", f"inject={syncs}:delay_enter={FOREVER}")


def keys_of(folder, number):
    """New keys of acme, which no server has seen."""
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as keys:
        return [keys.create_key("acme", f"key {key}") for key in range(number)]


def used_keys(folder):
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as keys:
        return {key.id for key in keys.all_keys() if key.last_used_at}


def answered(servers, manager):
    """The seconds that each of the PROMISED answers took; every server has another key."""
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


@pytest.mark.parametrize("slow", [locked, stalled])
def test_while_a_lock_is_held_or_the_disk_stalls_only_who_writes_waits(slow, program, traceable, tell, tmp_path):
    nothing(tmp_path)
    settings = identity.settings_of(tmp_path)
    with serving(program, tmp_path, **settings) as server, ThreadPoolExecutor(len(WRITES)) as writers:
        keys = keys_of(tmp_path, scaled(3, 10))
        manager = server._replace(key=identity.token())
        assert server.report("early").status == 202
        assert server.ask("GET", CACHED).status == 200
        before = answered([server] * IS_LONG, manager)
        with slow(server, tmp_path):
            waiting = [writers.submit(manager.ask, "POST", *write) for write in WRITES]
            during = answered([server._replace(key=key) for key in keys], manager)
            assert [write for write in waiting if write.done()] == []
        assert {write.result().status for write in waiting} <= {201, 202}
        wait_until(lambda: {key[:12] for key in keys} <= used_keys(tmp_path), 60)
    figures = {"p99": p99(during), "slowest": max(during)} | ({"p99_undisturbed": p99(before)} if before else {})
    tell(answers=len(during), **{f"milliseconds_{name}": round(1000 * value, 1) for name, value in figures.items()})
    assert not IS_LONG or p99(during) <= P99_SECONDS

"""A write that waits, for another process's lock or for a disk that stalls, stops nobody but who sent it (P18).

Each request below is answered while the write still waits. `TRAFFIC_FAULTS=all` goes on asking for 15 seconds of it,
and holds the times of the answers to their promise, which wants a machine that does nothing else meanwhile.
"""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from service.api_keys import ApiKeys
from tests.faults.servers import serving
from tests.faults.test_failing_disk import wait_until
from tests.faults.tracing import Tracer
from tests.faults.trials import IS_LONG, scaled
from tests.faults.victims import nothing
from tests.support import identity
from tests.support.control import open_store
from tests.support.lakes import opened

CACHED = "/analytics/devices"
PROMISED = (CACHED, "/openapi.json", "/healthz")
SECONDS = 15 if IS_LONG else 0
P99_SECONDS = 0.05
FOREVER = 600_000_000
"""Microseconds: longer than any test."""


def locked(name):
    """Another process holds the write lock of a database."""

    @contextmanager
    def locked(_, folder):
        with closing(sqlite3.connect(folder / "lake" / name, isolation_level=None, timeout=60)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield

    return locked


@contextmanager
def stalled(server, folder):
    """The disk does not finish to sync anything."""
    syncs = "fsync,fdatasync"
    expressions = ("-e", f"trace={syncs}", "-e", f"inject={syncs}:delay_enter={FOREVER}")
    tracer = Tracer(server.child.process, folder / "trace", *expressions)
    assert tracer.is_attached, tracer.told
    try:
        yield
    finally:
        tracer.detach()


def keys_of(folder, number):
    """New keys of acme, which no server has seen."""
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as keys:
        return [keys.create_key("acme", f"key {key}") for key in range(number)]


def used_keys(folder):
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as keys:
        return {key.id for key in keys.all_keys() if key.last_used_at}


def answered(servers, manager):
    """The seconds that each of the PROMISED answers took, in order; every server has another key."""
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
    return sorted(took)


def p99(seconds):
    return seconds[int(0.99 * len(seconds))]


def check_others_are_answered(slow, writes, program, folder, tell):
    """While `slow` lasts, the writes wait and everything else is answered; then the writes are done."""
    nothing(folder)
    with serving(program, folder, **identity.settings_of(folder)) as server, ThreadPoolExecutor(len(writes)) as writers:
        keys = keys_of(folder, scaled(3, 10))
        manager = server._replace(key=identity.token())
        assert server.report("early").status == 202
        assert server.ask("GET", CACHED).status == 200
        before = answered([server] * IS_LONG, manager)
        with slow(server, folder):
            waiting = [writers.submit(manager.ask, "POST", *write) for write in writes]
            during = answered([server._replace(key=key) for key in keys], manager)
            assert [write for write in waiting if write.done()] == []
        assert {write.result().status for write in waiting} <= {201, 202}
        wait_until(lambda: {key[:12] for key in keys} <= used_keys(folder))
    figures = {"p99": p99(during), "slowest": during[-1]} | ({"p99_undisturbed": p99(before)} if before else {})
    tell(answers=len(during), **{f"milliseconds_{name}": round(1000 * value, 1) for name, value in figures.items()})
    assert not IS_LONG or p99(during) <= P99_SECONDS


KEY = "/settings/api-keys", b'{"name": "late"}'
VISIT = "/visits", b'{"path": "/late"}'


@pytest.mark.parametrize(("name", "write"), [("control.sqlite", KEY), ("manifest.sqlite", VISIT)])
def test_while_another_process_holds_a_write_lock_only_who_writes_waits(name, write, program, tell, tmp_path):
    check_others_are_answered(locked(name), [write], program, tmp_path, tell)


def test_while_the_disk_stalls_only_who_writes_waits(program, traceable, tell, tmp_path):
    check_others_are_answered(stalled, [KEY, VISIT], program, tmp_path, tell)

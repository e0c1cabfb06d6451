"""Query threads have a lower priority than the event loop."""

import asyncio
import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from queries import Warehouse
from service.core.http.pools import Workers
from service.core.threads import NICENESS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority of each thread")

MINE = "acme", False


def niceness(thread=0):
    return os.getpriority(os.PRIO_PROCESS, thread or threading.get_native_id())


def threads():
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


def test_query_threads_and_engine_threads_have_low_priority(lake):
    before = threads()
    with closing(Workers()) as workers, closing(workers.open_engine(lambda: Warehouse(lake))) as warehouse:
        started = threads() - before
        assert asyncio.run(workers.compute(*MINE, niceness)) == niceness() + NICENESS
        asyncio.run(workers.compute(*MINE, warehouse.probe))
        assert {niceness(thread) for thread in started | (threads() - before)} == {niceness() + NICENESS}


def test_an_error_while_opening_an_engine_reaches_the_caller(lake):
    with closing(Workers()) as workers, pytest.raises(ZeroDivisionError):
        workers.open_engine(lambda: 1 // 0)


def test_queries_keep_normal_priority_if_setting_it_is_denied(monkeypatch):
    def forbidden(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", forbidden)
    with closing(Workers()) as workers:
        assert asyncio.run(workers.compute(*MINE, niceness)) == niceness()

"""Threads that query, merge and count go after the event loop; what lands visits does not."""

import asyncio
import os
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from queries import Warehouse
from service.http.query_batch import Workers
from service.maintenance import Maintenance
from service.priority import NICENESS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority of each thread")


def niceness(thread=0):
    return os.getpriority(os.PRIO_PROCESS, thread or threading.get_native_id())


def threads():
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


def test_queries_and_the_threads_of_their_engine_go_after_others(lake):
    before = threads()
    with closing(Workers()) as workers, closing(workers.open(lambda: Warehouse(lake))) as warehouse:
        started = threads() - before
        assert asyncio.run(workers.compute(niceness)) == niceness() + NICENESS
        asyncio.run(workers.compute(warehouse.probe))
        assert {niceness(thread) for thread in started | (threads() - before)} == {niceness() + NICENESS}


def test_an_engine_that_cannot_be_opened_fails_where_it_is_opened(lake):
    with closing(Workers()) as workers, pytest.raises(ZeroDivisionError):
        workers.open(lambda: 1 // 0)


def test_background_work_goes_after_others_but_visits_land_at_full_priority(lake):
    found = {}

    class Watched(Maintenance):
        def _run_safely(self, work):
            found[work.__name__] = niceness()
            return False

    async def run():
        maintenance = Watched(lake, lambda: datetime.now(UTC), None)
        await maintenance._run_step(maintenance._flush_if_due)
        await maintenance._run_step(maintenance._compact)
        await maintenance.end()

    asyncio.run(run())
    assert found == {"_flush_if_due": niceness(), "_compact": niceness() + NICENESS, "_flush": niceness()}

"""Limits on concurrent queries: one more than there are cores run at once, and at most MAX_BATCHES requests wait."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from queries import EngineLost, Entry, FilesGone, Scope, Variables, Warehouse
from service.encoding import encode
from service.http.errors import Overloaded

Result = TypeVar("Result")

MAX_BATCHES: Final = 32
"""Requests whose queries run or wait for a thread; a dashboard is one request. Further requests get Overloaded."""

MAX_RETRIES: Final = 3
"""Files may be replaced again while a query is retried, on a busy machine more than once."""


class Workers:
    """The threads that run queries, and the number of admitted batches."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor((os.cpu_count() or 1) + 1, thread_name_prefix="query")
        self._probe_thread = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self._batches = 0

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a query as soon as a thread is free."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run short blocking work in a thread of its own, which queries cannot occupy."""
        return await asyncio.get_running_loop().run_in_executor(self._probe_thread, work)

    @property
    def batches(self) -> int:
        """The number of batches that are admitted now."""
        return self._batches

    def admit(self) -> None:
        """Admit one batch. Raises Overloaded if MAX_BATCHES are admitted already."""
        if self._batches >= MAX_BATCHES:
            raise Overloaded
        self._batches += 1

    def release(self) -> None:
        """End the admission of one batch."""
        self._batches -= 1

    def close(self) -> None:
        """Wait for running queries and end the threads."""
        for threads in (self._threads, self._probe_thread):
            threads.shutdown(cancel_futures=True)


class QueryBatch:
    """The queries of one request. They are admitted together and share one snapshot of the lake.

    The batch is admitted with its first query and released after its last, so that it never waits for admission
    while it occupies a thread.
    """

    def __init__(self, warehouse: Warehouse, workers: Workers, scope: Scope, shares_visits: bool) -> None:
        """With `shares_visits`, the visits of a link are read once and shared by all answers of the batch."""
        self._warehouse = warehouse
        self._workers = workers
        self._scope = scope
        self._shares_visits = shares_visits
        self._queries = 0
        self._snapshot: asyncio.Task[Variables] | None = None

    async def run(self, entry: Entry) -> bytes:
        """The encoded answer of an entry. Raises Overloaded, and what Warehouse.answer raises.

        After FilesGone or EngineLost the query is retried with a new snapshot, MAX_RETRIES times at most. Cancelling
        the coroutine cancels the query.
        """
        with self._admitted():
            for _ in range(MAX_RETRIES):
                snapshot = self._current_snapshot()
                try:
                    return await self._answer(entry, snapshot)
                except (FilesGone, EngineLost):
                    if self._snapshot is snapshot:  # otherwise another query of this batch has renewed it
                        self._snapshot = None
            return await self._answer(entry, self._current_snapshot())

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        if not self._queries:
            self._workers.admit()
        self._queries += 1
        try:
            yield
        finally:
            self._queries -= 1
            if not self._queries:
                self._workers.release()

    def _current_snapshot(self) -> asyncio.Task[Variables]:
        if self._snapshot is None:
            self._snapshot = asyncio.create_task(self._workers.compute(self._take_snapshot))
        return self._snapshot

    async def _answer(self, entry: Entry, snapshot: asyncio.Task[Variables]) -> bytes:
        variables = await asyncio.shield(snapshot)  # other queries of this batch may still need it
        cancelled = threading.Event()
        try:
            return await self._workers.compute(lambda: encode(self._warehouse.answer(entry, variables, cancelled)))
        except asyncio.CancelledError:
            self._warehouse.stop(cancelled)
            raise

    def _take_snapshot(self) -> Variables:
        variables = self._warehouse.variables(self._scope)
        return self._warehouse.with_link_visits(variables) if self._shares_visits else variables

"""Admission of queries: at most one more than there are cores run at once, and a bounded number of requests waits."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from queries import EngineLost, Entry, FilesGone, Scope, Warehouse
from service.encoding import encode
from service.http.errors import Overloaded

Result = TypeVar("Result")

MAX_BATCHES: Final = 32
"""Requests whose queries run or wait for a thread; a dashboard is one request. More are refused."""


class Workers:
    """The threads that queries run in, and how many batches of queries use them now."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor((os.cpu_count() or 1) + 1, thread_name_prefix="query")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._batches = 0

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a query, when a thread is free."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run short blocking work aside from the queries, however many of them wait."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)

    @property
    def batches(self) -> int:
        """How many batches are admitted now."""
        return self._batches

    def admit(self) -> None:
        """Count one batch more. Raises Overloaded when MAX_BATCHES are admitted already."""
        if self._batches >= MAX_BATCHES:
            raise Overloaded
        self._batches += 1

    def release(self) -> None:
        """Count one batch less."""
        self._batches -= 1

    def close(self) -> None:
        """Wait for the queries under way and end the threads."""
        for threads in (self._threads, self._aside):
            threads.shutdown(cancel_futures=True)


class QueryBatch:
    """The queries of one request: admitted as one, over one snapshot of the manifest.

    The batch is admitted with its first query and released with its last, so that it never waits for admission while
    it holds a thread.
    """

    def __init__(self, warehouse: Warehouse, workers: Workers, scope: Scope, shares_visits: bool) -> None:
        """`shares_visits` says that several answers are to come, which read the visits of a link once for all."""
        self._warehouse = warehouse
        self._workers = workers
        self._scope = scope
        self._shares_visits = shares_visits
        self._queries = 0
        self._snapshot: asyncio.Task[dict[str, Any]] | None = None

    async def run(self, entry: Entry) -> bytes:
        """The encoded answer of an entry. Raises Overloaded, and what the Warehouse raises.

        A query that lost its files or its engine is run once more, over a new snapshot. Cancelling this stops the
        query.
        """
        with self._admitted():
            try:
                return await self._run(entry)
            except (FilesGone, EngineLost):
                self._snapshot = None
                return await self._run(entry)

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

    async def _run(self, entry: Entry) -> bytes:
        if self._snapshot is None:
            self._snapshot = asyncio.create_task(self._workers.compute(self._take_snapshot))
        variables = await asyncio.shield(self._snapshot)  # other queries of this batch may still need it
        unwanted = threading.Event()
        try:
            return await self._workers.compute(lambda: encode(self._warehouse.answer(entry, variables, unwanted)))
        except asyncio.CancelledError:
            self._warehouse.stop(unwanted)
            raise

    def _take_snapshot(self) -> dict[str, Any]:
        variables = self._warehouse.variables(self._scope)
        return self._warehouse.with_link_visits(variables) if self._shares_visits else variables

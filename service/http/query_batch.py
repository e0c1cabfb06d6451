"""Limits on concurrent queries: one more than there are cores run at once, and at most MAX_BATCHES requests wait.

Queries on a cluster have threads and admissions of their own, so that the others go on while it is slow or gone.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from queries import ClusterUnavailable, Engine, EngineLost, Entry, FilesGone, Scope, Variables, is_for_cluster
from service.encoding import encode
from service.http.errors import ClusterDown, Overloaded
from service.priority import lower_priority
from service.threads import Result, in_thread

MAX_BATCHES: Final = 32
"""Requests whose queries run or wait for a thread; a dashboard is one request. Further requests get Overloaded."""

MAX_RETRIES: Final = 3
"""Files may be replaced again while a query is retried, on a busy machine more than once."""

CLUSTER_THREADS: Final = 8
"""Queries that wait for a cluster at once. They cost this machine little."""


class Lane:
    """Threads that run queries, at a low priority, and the number of admitted batches."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=lower_priority)
        self._batches = 0

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a query as soon as a thread is free."""
        return await in_thread(self._threads, work)

    @property
    def batches(self) -> int:
        """The number of batches that are admitted now."""
        return self._batches

    @property
    def is_full(self) -> bool:
        """Whether MAX_BATCHES are admitted now."""
        return self._batches >= MAX_BATCHES

    def admit(self) -> None:
        """Admit one batch. Raises Overloaded if MAX_BATCHES are admitted already."""
        if self.is_full:
            raise Overloaded
        self._batches += 1

    def release(self) -> None:
        """End the admission of one batch."""
        self._batches -= 1

    def close(self) -> None:
        """Wait for running queries and end the threads."""
        self._threads.shutdown(cancel_futures=True)


class Workers(Lane):
    """The threads that run queries on this machine, and beside them those for a cluster and for short work."""

    def __init__(self) -> None:
        super().__init__((os.cpu_count() or 1) + 1, "query")
        self.cluster = Lane(CLUSTER_THREADS, "cluster")
        self._probe_thread = ThreadPoolExecutor(1, thread_name_prefix="probe")

    def open_engine(self, engine: Callable[[], Result]) -> Result:
        """Open an engine in a thread of queries, whose priority DuckDB's own threads inherit. Blocks."""
        return self._threads.submit(engine).result()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run short blocking work in a thread of its own, which queries cannot occupy."""
        return await in_thread(self._probe_thread, work)

    def close(self) -> None:
        """Wait for running queries and end the threads."""
        super().close()
        self.cluster.close()
        self._probe_thread.shutdown(cancel_futures=True)


class QueryBatch:
    """The queries of one request. They are admitted together and share one snapshot of the lake.

    The batch is admitted with its first query and released after its last, so that it never waits for admission
    while it occupies a thread. A batch that turns out to be for the cluster moves there with all its queries.
    """

    def __init__(self, engine: Engine, workers: Workers, scope: Scope, entries: Sequence[Entry]) -> None:
        """`entries` are those that are asked for. If there are several, they share the visits of a link."""
        self._engine = engine
        self._workers = workers
        self._lane: Lane = workers
        self._scope = scope
        self._entries = entries
        self._queries = 0
        self._snapshot: asyncio.Task[Variables] | None = None

    async def run(self, entry: Entry) -> bytes:
        """The encoded answer of an entry. Raises Overloaded, ClusterDown, and what Engine.answer raises.

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
            self._lane = self._workers
            self._lane.admit()
        self._queries += 1
        try:
            yield
        finally:
            self._queries -= 1
            if not self._queries:
                self._lane.release()

    def _current_snapshot(self) -> asyncio.Task[Variables]:
        if self._snapshot is None:
            self._snapshot = asyncio.create_task(self._workers.compute(self._take_snapshot))
        return self._snapshot

    async def _answer(self, entry: Entry, snapshot: asyncio.Task[Variables]) -> bytes:
        variables = await asyncio.shield(snapshot)  # other queries of this batch may still need it
        self._move_to(self._workers.cluster if is_for_cluster(variables) else self._workers)
        cancelled = threading.Event()
        try:
            return await self._lane.compute(lambda: encode(self._engine.answer(entry, variables, cancelled)))
        except ClusterUnavailable as error:
            raise ClusterDown from error
        except asyncio.CancelledError:
            self._engine.stop(cancelled)
            raise

    def _move_to(self, lane: Lane) -> None:
        """Admit the batch there instead of where it is admitted now. Raises Overloaded."""
        if lane is not self._lane:
            lane.admit()
            self._lane.release()
            self._lane = lane

    def _take_snapshot(self) -> Variables:
        variables = self._engine.variables(self._scope)
        return self._engine.with_link_visits(variables, self._entries) if len(self._entries) > 1 else variables

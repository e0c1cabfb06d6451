"""Limits on concurrent queries: the number of running queries is at most the number of cores plus one, and at most
MAX_REQUESTS requests of an organization run or wait.

Queries on a cluster have their own threads and queue, so that a slow or unreachable cluster does not block other
queries.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import Final

from service.core.http.errors import Overloaded
from service.core.http.scheduler import Scheduler
from service.core.threads import Result, in_thread, lower_priority

MAX_REQUESTS: Final = 32
"""Maximum number of an organization's requests with running or waiting queries; a dashboard is one request. Further
requests are rejected.

The public shares of an organization have a separate limit of the same size.
"""

CLUSTER_THREADS: Final = 8
"""Maximum number of concurrent queries on a cluster. They cost this machine little."""

TEXT_THREADS: Final = 2
"""Number of threads that render pages and other text: they hold the interpreter's lock, which the event loop needs,
too.

While queries of other organizations are running or waiting, an organization's rendering, like its live visits, rests
half of the time.
"""


class Pool:
    """A thread pool in which organizations take turns. For use in one event loop."""

    def __init__(
        self,
        threads: int,
        name: str,
        initializer: Callable[[], None] | None = lower_priority,
        needs_rest: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`initializer` runs first in each thread; the default gives the thread a low priority, which suits queries.

        After its work, an organization rests for as long as the work took if `needs_rest` returns true.
        """
        self._needs_rest = needs_rest
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=initializer)
        self._scheduler = Scheduler(threads)
        self._requests: Counter[tuple[str, bool]] = Counter()

    async def compute(self, organization: str, is_share: bool, work: Callable[[], Result]) -> Result:
        """Run a query or other work of an organization, or of its shares, when its turn comes."""
        await self._scheduler.acquire(organization, is_share)
        started_at = monotonic()
        running = asyncio.wrap_future(self.executor.submit(work))
        running.add_done_callback(lambda _: self._end(organization, started_at))  # only after the query has ended
        # retrieve the exception in case the client has disconnected
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(running)

    def _end(self, organization: str, started_at: float) -> None:
        rest_seconds = monotonic() - started_at if self._needs_rest(organization) else 0
        self._scheduler.release(organization, rest_seconds)

    def serves_others(self, organization: str) -> bool:
        """Return whether any other organization has running or waiting work."""
        return self._scheduler.serves_others(organization)

    def is_full(self, organization: str, is_share: bool) -> bool:
        """Return whether MAX_REQUESTS requests of an organization, or of its shares, are admitted now."""
        return self._requests[organization, is_share] >= MAX_REQUESTS

    def admit(self, organization: str, is_share: bool) -> None:
        """Admit one request. Raises Overloaded if MAX_REQUESTS are already admitted."""
        if self.is_full(organization, is_share):
            raise Overloaded
        self._requests[organization, is_share] += 1

    def end_request(self, organization: str, is_share: bool) -> None:
        """End the admission of one request."""
        self._requests[organization, is_share] -= 1
        if not self._requests[organization, is_share]:
            del self._requests[organization, is_share]

    @contextmanager
    def admitted(self, organization: str, is_share: bool) -> Iterator[None]:
        """Admit one request for the duration of the context. Raises Overloaded."""
        self.admit(organization, is_share)
        try:
            yield
        finally:
            self.end_request(organization, is_share)

    def close(self) -> None:
        """Wait for running queries and end the threads."""
        self.executor.shutdown(cancel_futures=True)


class Workers(Pool):
    """The thread pools: for queries on this machine and on a cluster, rendering, writes to jobs, and short work."""

    def __init__(self) -> None:
        super().__init__((os.cpu_count() or 1) + 1, "query")
        self.cluster = Pool(CLUSTER_THREADS, "cluster")
        self.texts = Pool(TEXT_THREADS, "text", None, self.serves_others)
        self.writes = Pool(1, "job-write", None, self.serves_others)
        """The pool for writes to jobs, with one thread: writes have to wait for each other anyway."""
        self._probe_thread = ThreadPoolExecutor(1, thread_name_prefix="probe")

    def open_engine(self, engine: Callable[[], Result]) -> Result:
        """Open an engine in a query thread, so that DuckDB's own threads inherit its priority. Blocks."""
        return self.executor.submit(engine).result()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run short blocking work in a separate thread, which queries cannot occupy."""
        return await in_thread(self._probe_thread, work)

    def close(self) -> None:
        """Wait for running queries and end the threads."""
        super().close()
        self.cluster.close()
        self.texts.close()
        self.writes.close()
        self._probe_thread.shutdown(cancel_futures=True)

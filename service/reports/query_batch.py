"""The queries of one request, admitted together to a pool of workers."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Final

from data.errors import Conflict
from queries import ClusterSnapshot, ClusterUnavailable, Engine, EngineLost, Entry, FilesGone, Scope, Snapshot
from service.core.encoding import encode
from service.core.http.errors import ClusterDown
from service.core.http.pools import Pool, Workers

MAX_RETRIES: Final = 3
"""Maximum number of retries. On a busy machine, files may be replaced again during a retry, even repeatedly."""


class QueryBatch:
    """The queries of one request. They share one snapshot of the lake.

    The batch is admitted with its first query and released after its last, so its concurrent queries count as one
    request. If the snapshot is for the cluster, the batch moves to the cluster's pool with all its queries.
    """

    def __init__(
        self, engine: Engine, workers: Workers, scope: Scope, is_share: bool, entries: Sequence[Entry]
    ) -> None:
        """`entries` are the requested entries. If there are several, they share visits in memory where possible."""
        self._engine = engine
        self._workers = workers
        self._pool: Pool = workers
        self._scope = scope
        self.is_share = is_share
        self._turn = scope.organization, is_share
        self._entries = entries
        self._running = 0
        """Number of queries that are waiting or running."""
        self._snapshot: asyncio.Task[Snapshot] | None = None
        self._snapshot_cancelled = threading.Event()

    async def run(self, entry: Entry) -> bytes:
        """Return an entry's encoded answer.

        Raises Overloaded, ClusterDown, and the exceptions of Engine.answer. After FilesGone, EngineLost or Conflict the
        query is retried with a new snapshot, at most MAX_RETRIES times. Cancelling the coroutine cancels the query.
        """
        if not self._running:
            self._pool = self._workers
            self._pool.admit(*self._turn)
        self._running += 1
        try:
            for _ in range(MAX_RETRIES):
                snapshot = self._current_snapshot()
                try:
                    return await self._answer(entry, snapshot)
                except (FilesGone, EngineLost, Conflict):
                    if self._snapshot is snapshot:  # otherwise another query of this batch has renewed it
                        self._snapshot = None
            return await self._answer(entry, self._current_snapshot())
        finally:
            self._running -= 1
            if not self._running:
                self._pool.end_request(*self._turn)
                if self._snapshot and not self._snapshot.done():  # no query waits for it any more
                    self._engine.stop(self._snapshot_cancelled)
                    self._snapshot = None
                elif self._snapshot and not self._snapshot.cancelled() and not self._snapshot.exception():
                    self._engine.forget(self._snapshot.result())

    def _current_snapshot(self) -> asyncio.Task[Snapshot]:
        if self._snapshot is None:
            cancelled = self._snapshot_cancelled = threading.Event()

            def take() -> Snapshot:
                snapshot = self._engine.snapshot(self._scope)
                if len(self._entries) == 1:
                    return snapshot
                return self._engine.with_shared_visits(snapshot, self._entries, cancelled)

            taking = self._workers.compute(*self._turn, take)
            self._snapshot = asyncio.create_task(taking)
            # retrieve the exception in case no query awaits the task any more
            self._snapshot.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._snapshot

    async def _answer(self, entry: Entry, taking: asyncio.Task[Snapshot]) -> bytes:
        snapshot = await asyncio.shield(taking)  # other queries of this batch may still need it
        pool = self._workers.cluster if isinstance(snapshot, ClusterSnapshot) else self._workers
        if pool is not self._pool:  # admit the batch there instead
            pool.admit(*self._turn)
            self._pool.end_request(*self._turn)
            self._pool = pool
        cancelled = threading.Event()
        try:
            return await self._pool.compute(
                *self._turn,
                lambda: encode(self._engine.answer(entry, snapshot, cancelled)),
            )
        except ClusterUnavailable as error:
            raise ClusterDown from error
        except asyncio.CancelledError:
            self._engine.stop(cancelled)
            raise

"""From a Scope to the bytes of an answer: out of the cache, or computed by the Warehouse in a worker thread."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from queries import ANSWERS, Entry, FilesGone, Scope, Warehouse
from service.cache import AnswerCache, Slot
from service.encoding import encode
from service.errors import Overloaded

Result = TypeVar("Result")

MOST_COMPUTING: Final = 32
"""Requests whose answers are being computed or wait for their turn; a dashboard is one. More are refused."""


class Workers:
    """The threads that queries run in, and the places of the requests that wait for them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor((os.cpu_count() or 1) + 1, thread_name_prefix="query")
        self._computing = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do blocking work in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def admit(self) -> None:
        """Take a place. Raises Overloaded when there is none."""
        if self._computing >= MOST_COMPUTING:
            raise Overloaded
        self._computing += 1

    def release(self) -> None:
        """Give a place back."""
        self._computing -= 1

    def close(self) -> None:
        """Wait for the work under way and end the threads."""
        self._threads.shutdown(cancel_futures=True)


class Answers:
    """The answers of one lake, for one event loop."""

    def __init__(self, warehouse: Warehouse, cache: AnswerCache, workers: Workers) -> None:
        self._warehouse = warehouse
        self._cache = cache
        self._workers = workers

    async def body(self, entry: Entry, scope: Scope) -> bytes:
        """The answer of an entry as JSON. Raises Overloaded, and what the Warehouse raises."""
        turn = _Turn(self._warehouse, self._workers, scope, self._warehouse.epoch(scope.organization))
        shared = [(member, part) for member, part in entry.members if part.name in ANSWERS]
        if not shared:
            return await self._slot(entry, turn)
        is_hit = all(self._cache.held(turn.slot(part)) is not None for _, part in shared)
        self._cache.count(scope.organization, entry.name, "hits" if is_hit else "misses")
        bodies = await asyncio.gather(*(self._slot(part, turn) for _, part in shared))
        members = (b'"%s":%s' % (name.encode(), body) for (name, _), body in zip(shared, bodies, strict=True))
        return b"{" + b",".join(members) + b"}"

    def statistics(self, organization: str) -> list[dict[str, Any]]:
        """The rows of cache-stats."""
        return self._cache.statistics(organization, list(ANSWERS))

    async def _slot(self, entry: Entry, turn: "_Turn") -> bytes:
        slot = turn.slot(entry)
        body = self._cache.held(slot)
        self._cache.count(turn.scope.organization, entry.name, "misses" if body is None else "hits")
        if body is not None:
            return body
        task = self._cache.computing(slot)
        if task is None:
            turn.begin()
            task = self._cache.compute(slot, lambda: turn.answer(entry))
        return await asyncio.shield(task)


class _Turn:
    """One request's place in the queue, and what all its computations see of the manifest."""

    def __init__(self, warehouse: Warehouse, workers: Workers, scope: Scope, epoch: int) -> None:
        self.scope = scope
        self._epoch = epoch
        self._warehouse = warehouse
        self._workers = workers
        self._computations = 0
        self._variables: asyncio.Task[dict[str, Any]] | None = None

    def slot(self, entry: Entry) -> Slot:
        """Where the answer of an entry is held."""
        return Slot(entry.name, self.scope, self._epoch)

    def begin(self) -> None:
        """Announce a computation; the first one takes a place. Raises Overloaded."""
        if not self._computations:
            self._workers.admit()
        self._computations += 1

    async def _answer(self, entry: Entry) -> bytes:
        if self._variables is None:
            self._variables = asyncio.create_task(self._workers.run(lambda: self._warehouse.variables(self.scope)))
        variables = await self._variables
        return await self._workers.run(lambda: encode(self._warehouse.answer(entry, variables)))

    async def answer(self, entry: Entry) -> bytes:
        """Compute an announced answer; the last one gives the place back."""
        try:
            try:
                return await self._answer(entry)
            except FilesGone:
                self._variables = None
                return await self._answer(entry)
        finally:
            self._computations -= 1
            if not self._computations:
                self._workers.release()

"""From a Scope to the bytes of an answer: out of the cache, or computed by the Warehouse in a worker thread.

A computation belongs to all who wait for it. Who leaves stops waiting; when the last one leaves, its query is stopped.
"""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from starlette.types import Receive

from queries import ENTRIES, EngineLost, Entry, FilesGone, Scope, Warehouse
from service.encoding import encode
from service.http.cache import AnswerCache, Held, Slot
from service.http.errors import ClientLeft, Overloaded

Result = TypeVar("Result")

MOST_COMPUTING: Final = 32
"""Requests whose answers are being computed or wait for their turn; a dashboard is one. More are refused."""
_SHARED: Final = {
    name: [(member, part) for member, part in entry.members if part.name in ENTRIES] for name, entry in ENTRIES.items()
}
"""The parts of each answer that are answers of their own, by the member that each is."""


class Workers:
    """The threads that queries run in, and the places of the requests that wait for them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor((os.cpu_count() or 1) + 1, thread_name_prefix="query")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._computing = 0

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Do work for an answer, in its turn."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do short blocking work at once, however many computations wait for their turn."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)

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
        for threads in (self._threads, self._aside):
            threads.shutdown(cancel_futures=True)


class Answers:
    """The answers of one lake, for one event loop."""

    def __init__(self, warehouse: Warehouse, cache: AnswerCache, workers: Workers) -> None:
        self._warehouse = warehouse
        self.cache = cache
        self._workers = workers
        self._waiting: Counter[asyncio.Task[bytes]] = Counter()

    async def body(self, entry: Entry, scope: Scope, receive: Receive | None = None) -> bytes:
        """The answer of an entry as JSON. Raises Overloaded, and what the Warehouse raises.

        With `receive`, where a server tells that the client left, also ClientLeft.
        """
        held = self.held(entry, scope, self.epoch(scope.organization))
        if held is not None:
            self.count_hit(entry, scope.organization)
            return held.body
        computed = self._computed(entry, scope)
        return await (_while_there(computed, receive) if receive else computed)

    def held(self, entry: Entry, scope: Scope, epoch: int) -> Held | None:
        """The answer of an entry as JSON where nothing has to be computed for it, as old as the oldest of its parts."""
        shared = _SHARED.get(entry.name, [])
        found = []
        for _, part in shared or [("", entry)]:
            held = self.cache.found(Slot(part.name, scope, epoch))
            if held is None:
                return None
            found.append(held)
        if not shared:
            return found[0]
        body = _joined([member for member, _ in shared], [held.body for held in found])
        return Held(body, min(held.stored_at for held in found))

    def epoch(self, organization: str) -> int:
        """What an answer must rest on to be given to who asks now."""
        return self._warehouse.epoch(organization)

    def count_hit(self, entry: Entry, organization: str) -> None:
        """Count that an answer was given for which nothing was computed."""
        self.cache.count(organization, entry.name, "hits")

    def statistics(self, organization: str) -> list[dict[str, Any]]:
        """The rows of cache-stats."""
        parts = {name: [part.name for _, part in shared] for name, shared in _SHARED.items()}
        return self.cache.statistics(organization, list(ENTRIES), parts)

    async def _computed(self, entry: Entry, scope: Scope) -> bytes:
        shared = _SHARED.get(entry.name, [])
        turn = _Turn(self._warehouse, self._workers, scope, self.epoch(scope.organization), is_of_many=bool(shared))
        if not shared:
            return await self._slot(entry, turn)
        self.cache.count(scope.organization, entry.name, "misses")
        bodies = await _together([self._slot(part, turn) for _, part in shared])
        return _joined([member for member, _ in shared], bodies)

    async def _slot(self, entry: Entry, turn: "_Turn") -> bytes:
        slot = turn.slot(entry)
        body = self.cache.held(slot)
        self.cache.count(turn.scope.organization, entry.name, "misses" if body is None else "hits")
        if body is not None:
            return body
        task = self.cache.computing(slot)
        if task is None:
            turn.begin()
            task = self.cache.compute(slot, lambda: turn.answer(entry))
            task.add_done_callback(lambda _: turn.end())
        return await self._waited(task)

    async def _waited(self, task: asyncio.Task[bytes]) -> bytes:
        """What a computation gives. Who stops waiting for it as the last one ends it."""
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                task.cancel()  # of one that is done this does nothing


async def _while_there(answering: Coroutine[Any, Any, bytes], receive: Receive) -> bytes:
    """An answer, unless the client leaves before: then nobody waits for it here. Raises ClientLeft."""
    answer, departure = asyncio.ensure_future(answering), asyncio.ensure_future(_departure(receive))
    try:
        await asyncio.wait({answer, departure}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientLeft
        return answer.result()
    finally:
        answer.cancel()
        departure.cancel()


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass  # the rest of a request that was understood already


async def _together(parts: Sequence[Coroutine[Any, Any, bytes]]) -> list[bytes]:
    """All answers; once one has failed, nobody waits for the others here."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _joined(members: Sequence[str], bodies: Sequence[bytes]) -> bytes:
    """An answer of several parts."""
    told = (b'"%s":%s' % (name.encode(), body) for name, body in zip(members, bodies, strict=True))
    return b"{" + b",".join(told) + b"}"


class _Turn:
    """One request's place in the queue, and what all its computations see of the manifest."""

    def __init__(self, warehouse: Warehouse, workers: Workers, scope: Scope, epoch: int, is_of_many: bool) -> None:
        self.scope = scope
        self._is_of_many = is_of_many
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

    def end(self) -> None:
        """Tell of the end of an announced computation; the last one gives the place back."""
        self._computations -= 1
        if not self._computations:
            self._workers.release()

    async def answer(self, entry: Entry) -> bytes:
        """Compute an announced answer."""
        try:
            return await self._answer(entry)
        except (FilesGone, EngineLost):
            self._variables = None
            return await self._answer(entry)

    async def _answer(self, entry: Entry) -> bytes:
        if self._variables is None:
            self._variables = asyncio.create_task(self._workers.compute(self._snapshot))
        variables = await asyncio.shield(self._variables)  # others of this turn may need it still
        unwanted = threading.Event()
        try:
            return await self._workers.compute(lambda: encode(self._warehouse.answer(entry, variables, unwanted)))
        except asyncio.CancelledError:
            self._warehouse.stop(unwanted)
            raise

    def _snapshot(self) -> dict[str, Any]:
        variables = self._warehouse.variables(self.scope)
        return self._warehouse.with_link_visits(variables) if self._is_of_many else variables

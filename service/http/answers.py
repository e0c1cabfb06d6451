"""From a Scope to the bytes of an answer: out of the cache, or computed by the Warehouse in a worker thread."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final

from starlette.types import Receive

from queries import ENDPOINTS, Entry, Scope, Warehouse
from service.http.cache import AnswerCache, CacheKey
from service.http.errors import ClientDisconnected
from service.http.query_batch import QueryBatch, Workers

_PARTS: Final = {
    name: [(b'"%s":' % member.encode(), part) for member, part in entry.members if part.name in ENDPOINTS]
    for name, entry in ENDPOINTS.items()
}
"""The parts of each answer that are answers of their own, with the encoded name of the member that each is."""


class Answers:
    """The answers of one lake as encoded JSON. Belongs to one event loop.

    HTTP endpoints ask it, and whatever else runs in the same process may: `await answers.body(entry, scope)`.
    """

    def __init__(self, warehouse: Warehouse, cache: AnswerCache, workers: Workers) -> None:
        self._warehouse = warehouse
        self._cache = cache
        self._workers = workers

    async def body(self, entry: Entry, scope: Scope, receive: Receive | None = None) -> bytes:
        """The answer of an entry of the catalogue within a scope, encoded as JSON.

        It is at most five minutes old, and rests on no visit that was erased or classified anew before the call.
        Raises Overloaded, and what the Warehouse raises. With `receive`, the ASGI callable of the request that asks,
        also ClientDisconnected as soon as its client disconnects.
        """
        epoch = self._warehouse.epoch(scope.organization)
        body = self._cached(entry, scope, epoch)
        if body is not None:
            self._cache.count(scope.organization, entry.name, "hits")
            return body
        computed = self._compute_answer(entry, scope, epoch)
        return await (_while_connected(computed, receive) if receive else computed)

    def statistics(self, organization: str) -> list[dict[str, Any]]:
        """The rows of cache-stats."""
        parts = {name: [part.name for _, part in pairs] for name, pairs in _PARTS.items()}
        return self._cache.statistics(organization, list(ENDPOINTS), parts)

    def _cached(self, entry: Entry, scope: Scope, epoch: int) -> bytes | None:
        """The answer if it is cached, or put together if all its parts are."""
        key = CacheKey.of(entry.name, scope, epoch)
        parts = _PARTS.get(entry.name)
        if not parts:
            return self._cache.get(key)
        members = []
        for name, part in parts:
            body = self._cache.get(CacheKey(part.name, *key[1:]))
            if body is None:
                return None
            members.append(name + body)
        return _object_of(members)

    async def _compute_answer(self, entry: Entry, scope: Scope, epoch: int) -> bytes:
        """The answer with all that is missing of it computed. Equal answers that others wait for are shared."""
        parts = _PARTS.get(entry.name)
        batch = QueryBatch(self._warehouse, self._workers, scope, shares_visits=bool(parts))

        def computed(entry: Entry) -> Coroutine[Any, Any, bytes]:
            return self._cache.get_or_compute(CacheKey.of(entry.name, scope, epoch), lambda: batch.run(entry))

        if not parts:
            return await computed(entry)
        self._cache.count(scope.organization, entry.name, "misses")
        bodies = await _all_of([computed(part) for _, part in parts])
        return _object_of(name + body for (name, _), body in zip(parts, bodies, strict=True))


async def _while_connected(answering: Coroutine[Any, Any, bytes], receive: Receive) -> bytes:
    """The result of a coroutine, cancelled when the client disconnects first. Raises ClientDisconnected."""
    answer, disconnect = asyncio.ensure_future(answering), asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait({answer, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnected
        return answer.result()
    finally:
        answer.cancel()
        disconnect.cancel()


async def _disconnect(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass  # the rest of a request that was understood already


async def _all_of(coroutines: Sequence[Coroutine[Any, Any, bytes]]) -> list[bytes]:
    """All results; once one has failed, the others are cancelled."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _object_of(members: Iterable[bytes]) -> bytes:
    """A JSON object of encoded members."""
    return b"{" + b",".join(members) + b"}"

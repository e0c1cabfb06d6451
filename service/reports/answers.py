"""Answers as encoded JSON: from the cache, or computed by an Engine in a worker thread."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from starlette.types import Receive

from data.manifest.organizations import OrganizationState
from queries import ENDPOINTS, ClusterTimeout, Engine, Entry, Scope, template_entries
from service.core.http.compression import compress
from service.core.http.errors import ClientDisconnected, LakeReplaced, Overloaded
from service.core.http.pools import Workers
from service.reports.cache import AnswerCache, CachedAnswer, CacheKey
from service.reports.query_batch import QueryBatch

Result = TypeVar("Result")

LONG: Final = ("bot-traffic", "top-links")
"""Entries that read the most rows of rollups. They start first, so that they do not run alone at the end."""

_PARTS: Final = {
    name: [(b'"%s":' % member.encode(), part) for member, part in entry.members if part.name in ENDPOINTS]
    for name, entry in ENDPOINTS.items()
}
"""For each entry, the parts that are cached under separate keys, each with its encoded member name and a colon."""


class Answers:
    """The answers of one lake as encoded JSON. Belongs to one event loop."""

    def __init__(self, engine: Engine, cache: AnswerCache, workers: Workers) -> None:
        self._engine = engine
        self._cache = cache
        self._workers = workers
        self._states: dict[str, OrganizationState] = {}

    async def body(self, entry: Entry, scope: Scope, is_share: bool = False, receive: Receive | None = None) -> bytes:
        """Return a catalog entry's answer for a scope, encoded as JSON. Queries from a share come last.

        The answer is at most five minutes old, and never older than the last erasure or reclassification. Raises
        Overloaded, ClusterDown, LakeReplaced and the Engine's exceptions. With `receive`, the ASGI callable of the
        request, also raises ClientDisconnected as soon as the client disconnects.
        """
        epoch = self.state(scope.organization).epoch
        body = self._cached_answer(entry, scope, epoch)
        if body is not None:
            return body
        self._check_capacity([entry], scope, epoch, is_share)
        batch = QueryBatch(self._engine, self._workers, scope, is_share, template_entries(entry))
        computed = self._compute_answer(entry, scope, epoch, batch)
        return await (while_connected(computed, receive) if receive else computed)

    async def compressed(self, entry: Entry, scope: Scope, is_share: bool, body: bytes) -> bytes:
        """Return an answer as gzip; `body` is the answer uncompressed. A cached answer is compressed only once."""
        key = CacheKey.of(entry.name, scope, self.state(scope.organization).epoch)
        answer = self._cache.get(key) or self._assemble(entry, key)

        def compute() -> Awaitable[bytes]:
            plain = answer.body if answer else body
            return self._workers.texts.compute(scope.organization, is_share, lambda: compress(plain))

        return await (self._cache.compressed(key, answer, is_share, compute) if answer else compute())

    async def get(self, pairs: Sequence[tuple[Entry, Scope]], is_share: bool = False) -> list[bytes]:
        """Return the answers for the pairs, in order, for a page. Pairs with the same scope are computed as one batch.

        The answers equal those from `body`, except that answers older than PAGE_SECONDS are computed again if the lake
        has changed and a further request can be admitted. A pair that is given twice is computed once.
        """
        groups: dict[Scope, dict[str, Entry]] = {}
        for entry, scope in pairs:
            groups.setdefault(scope, {})[entry.name] = entry
            if self._workers.is_full(scope.organization, is_share):
                continue  # an outdated answer is better than none
            state = self.state(scope.organization)
            for part in (entry, *(part for _, part in _PARTS.get(entry.name, ()))):
                self._cache.drop_outdated(CacheKey.of(part.name, scope, state.epoch), state.revision)
        for scope, entries in groups.items():
            self._check_capacity(entries.values(), scope, self.state(scope.organization).epoch, is_share)
        computing = {}
        for scope, entries in groups.items():
            epoch = self.state(scope.organization).epoch
            leaves = [leaf for entry in entries.values() for leaf in template_entries(entry)]
            batch = QueryBatch(self._engine, self._workers, scope, is_share, leaves)
            for name in _longest_first(entries):
                computing[scope, name] = self._get_or_compute(entries[name], scope, epoch, batch)
        bodies = dict(zip(computing, await all_of(computing.values()), strict=True))
        return [bodies[scope, entry.name] for entry, scope in pairs]

    async def _get_or_compute(self, entry: Entry, scope: Scope, epoch: int, batch: QueryBatch) -> bytes:
        return self._cached_answer(entry, scope, epoch) or await self._compute_answer(entry, scope, epoch, batch)

    def statistics(self, organization: str) -> list[dict[str, Any]]:
        """Return the rows of cache-stats."""
        parts = {name: [part.name for _, part in pairs] for name, pairs in _PARTS.items()}
        return self._cache.statistics(organization, list(ENDPOINTS), parts)

    def state(self, organization: str) -> OrganizationState:
        """Return the state of an organization, read once per iteration of the event loop.

        All requests answered in one iteration were received before it, so the state is never older than a request.
        Raises LakeReplaced.
        """
        if not self._states:
            asyncio.get_running_loop().call_soon(self._states.clear)
        if organization not in self._states:
            try:
                self._states[organization] = self._engine.state(organization)
            except OSError as error:
                raise LakeReplaced from error
        return self._states[organization]

    def _cached_answer(self, entry: Entry, scope: Scope, epoch: int) -> bytes | None:
        """Return the cached answer and count a hit, or return None if the answer or one of its parts is not cached."""
        key = CacheKey.of(entry.name, scope, epoch)
        answer = self._cache.get(key) or self._assemble(entry, key)
        if answer is None:
            return None
        self._cache.count(scope.organization, entry.name, "hits")
        return answer.body

    def _assemble(self, entry: Entry, key: CacheKey) -> CachedAnswer | None:
        """Assemble an entry's answer from its cached parts, and cache it; it expires with the oldest part. Return None
        if the entry has no parts, or if any part is not cached.
        """
        parts = _PARTS.get(entry.name)
        if not parts:
            return None
        answers = []
        for _, part in parts:
            answer = self._cache.get(CacheKey(part.name, *key[1:]))
            if answer is None:
                return None
            answers.append(answer)
        body = _object_of(name + answer.body for (name, _), answer in zip(parts, answers, strict=True))
        assembled = CachedAnswer(
            body, min(answer.stored_at for answer in answers), min(answer.revision for answer in answers)
        )
        self._cache.put(key, assembled)
        return assembled

    def _check_capacity(self, entries: Iterable[Entry], scope: Scope, epoch: int, is_share: bool) -> None:
        """Raise Overloaded if one of the entries has to be computed and too many requests are already admitted. Without
        this check, rejecting a dashboard would cost a task and an exception for each of its parts.
        """
        if not self._workers.is_full(scope.organization, is_share):
            return
        leaves = [part.name for entry in entries for _, part in _PARTS.get(entry.name) or [(b"", entry)]]
        if any(self._cache.needs_computation(CacheKey.of(name, scope, epoch), is_share) for name in leaves):
            raise Overloaded

    async def _compute_answer(self, entry: Entry, scope: Scope, epoch: int, batch: QueryBatch) -> bytes:
        """Compute the answer, or its parts that are not cached. Concurrent calls share computations."""
        parts = _PARTS.get(entry.name)

        def computed(entry: Entry) -> Coroutine[Any, Any, bytes]:
            key, revision = CacheKey.of(entry.name, scope, epoch), self.state(scope.organization).revision
            return self._cache.get_or_compute(key, batch.is_share, lambda: batch.run(entry), revision)

        if not parts:
            return await computed(entry)
        self._cache.count(scope.organization, entry.name, "misses")
        by_name = {part.name: part for _, part in parts}
        order = _longest_first(by_name)
        bodies = dict(zip(order, await all_of(computed(by_name[name]) for name in order), strict=True))
        return _object_of(member + bodies[part.name] for member, part in parts)


async def while_connected(answering: Awaitable[Result], receive: Receive) -> Result:
    """Await `answering` and return its result. If the client disconnects first, cancel the work and raise
    ClientDisconnected.
    """

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass  # ignore the rest of the body

    answer, disconnect = asyncio.ensure_future(answering), asyncio.ensure_future(disconnected())
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # after a disconnect, it is not awaited
    try:
        await asyncio.wait({answer, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnected
        return answer.result()
    finally:
        answer.cancel()
        disconnect.cancel()


async def all_of(computing: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run coroutines concurrently; return their results in order. If one fails, cancel the others and raise its
    exception.

    If one exceeds a cluster's time limit, ClusterTimeout is raised only after the others have ended: their results are
    cached, so that the next request may succeed.
    """
    tasks = [asyncio.ensure_future(one) for one in computing]
    try:
        return await asyncio.gather(*tasks)
    except ClusterTimeout:
        await asyncio.wait(tasks)
        raise
    finally:
        for task in tasks:
            task.cancel()


def _longest_first(names: Iterable[str]) -> list[str]:
    """Return the names of entries, with those in LONG first."""
    return sorted(names, key=lambda name: name not in LONG)


def _object_of(members: Iterable[bytes]) -> bytes:
    """Return a JSON object; each member is encoded as `"name":value`."""
    return b"{" + b",".join(members) + b"}"

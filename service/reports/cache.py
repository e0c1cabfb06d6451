"""Cache of encoded answers, for five minutes. Concurrent requests for the same answer share one computation."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self

from cachetools import TLRUCache

from queries import Scope
from service.core.http.errors import Overloaded

TTL_SECONDS: Final = 300
PAGE_SECONDS: Final = 30
"""Maximum age of a cached answer for pages if the lake has changed since."""
MAX_BYTES: Final = 64 << 20
_OVERHEAD_BYTES: Final = 512  # estimated memory of an entry in addition to its body
_FIELDS_OF: Final = attrgetter(*(field.name for field in fields(Scope)))


Compute = Callable[[], Awaitable[bytes]]
"""Computes an encoded answer, or compresses one."""


class CacheKey(NamedTuple):
    """The key of a cached answer: everything that the answer depends on, except newly added visits.

    The epoch rises when stored visits of the organization are changed or deleted.
    """

    name: str
    organization: str
    epoch: int
    scope: tuple[object, ...]  # the field values of the Scope; hashing a tuple is much faster than a dataclass

    @classmethod
    def of(cls, name: str, scope: Scope, epoch: int = 0) -> Self:
        """Return the key of the answer with this name for a scope."""
        return cls(name, scope.organization, epoch, _FIELDS_OF(scope))


class CachedAnswer(NamedTuple):
    """An encoded answer, and the time at which it was stored, by the cache's clock."""

    body: bytes
    stored_at: float
    revision: int = 0  # of the lake, before the answer was computed
    compressed: bytes = b""  # the body as gzip, once a client has asked for it

    @property
    def size(self) -> int:
        """The size of the answer in bytes."""
        return len(self.body) + len(self.compressed)


@dataclass
class _Computation:
    """An answer that is being computed, and the number of calls that are waiting for it."""

    task: asyncio.Task[bytes]
    waiting: int = 0


class _BoundedCache(TLRUCache[CacheKey, CachedAnswer]):
    """A TLRUCache of TTL_SECONDS that calls `on_eviction` for every answer that it removes to make room for another."""

    def __init__(self, clock: Callable[[], float], on_eviction: Callable[[CacheKey], None]) -> None:
        super().__init__(
            MAX_BYTES, ttu=lambda _, answer, __: answer.stored_at + TTL_SECONDS, timer=clock,
            getsizeof=lambda answer: answer.size + _OVERHEAD_BYTES,
        )  # fmt: skip
        self._on_eviction = on_eviction

    def popitem(self) -> tuple[CacheKey, CachedAnswer]:
        key, answer = super().popitem()
        self._on_eviction(key)
        return key, answer


class AnswerCache:
    """The cached answers of all organizations, at most MAX_BYTES. Belongs to one event loop; never blocks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._answers = _BoundedCache(clock, lambda key: self.count(key.organization, key.name, "evictions"))
        self._running: dict[tuple[CacheKey, bool], _Computation] = {}
        """Running computations, by key and by whether shares are waiting for them: other callers never wait for a query
        with a share's priority."""

    def __len__(self) -> int:
        """Return the number of cached answers, possibly including expired ones."""
        return len(self._answers)

    def get(self, key: CacheKey) -> CachedAnswer | None:
        """Return the cached answer, or None if there is none younger than TTL_SECONDS. Counts nothing."""
        try:
            return self._answers[key]  # TLRUCache.get would look it up twice
        except KeyError:
            return None

    def drop_outdated(self, key: CacheKey, revision: int) -> None:
        """Drop an answer if it is older than PAGE_SECONDS and the lake has changed since. Counts nothing."""
        answer = self.get(key)
        if answer and answer.revision != revision and self._clock() - answer.stored_at > PAGE_SECONDS:
            self._answers.pop(key, None)

    def put(self, key: CacheKey, answer: CachedAnswer) -> None:
        """Store an answer, unless it is too large."""
        if answer.size + _OVERHEAD_BYTES <= MAX_BYTES:
            self._answers[key] = answer

    def needs_computation(self, key: CacheKey, is_share: bool) -> bool:
        """Return whether get_or_compute would start a computation: the answer is neither cached nor being computed."""
        return self._computation(key, is_share) is None and self.get(key) is None

    async def get_or_compute(self, key: CacheKey, is_share: bool, compute: Compute, revision: int = 0) -> bytes:
        """Return the cached answer, or the result of `compute`, which is then cached. Counts a hit or a miss.

        Concurrent calls with the same key share one computation, but calls from shares have their own. A computation is
        cancelled when all of its calls are cancelled. If it fails, all of its calls raise the error, and nothing is
        cached. Overloaded is raised only by the call that started the computation; another call then starts it again.
        """
        cached = self.get(key)
        self.count(key.organization, key.name, "misses" if cached is None else "hits")
        if cached is not None:
            return cached.body
        return await self._join_or_start(
            key, is_share, compute, lambda body: self.put(key, CachedAnswer(body, self._clock(), revision))
        )

    async def compressed(self, key: CacheKey, answer: CachedAnswer, is_share: bool, compute: Compute) -> bytes:
        """Return the cached answer as gzip. The first call caches the result of `compute` next to the answer's body."""
        shared = key._replace(name=f"{key.name}.gz")  # a name that no entry has
        return answer.compressed or await self._join_or_start(
            shared, is_share, compute, lambda compressed: self.put(key, answer._replace(compressed=compressed))
        )

    def count(self, organization: str, name: str, what: str) -> None:
        """Increment one of an answer's counters; `what` is "hits", "misses" or "evictions"."""
        self._counts[organization][name, what] += 1

    def statistics(self, organization: str, names: list[str], parts: Mapping[str, list[str]]) -> list[dict[str, Any]]:
        """Return the rows of cache-stats for one organization: the total first, then one row for each of `names`.

        `parts` maps an answer to the answers that it consists of: a hit on the whole is a hit on each part.
        """
        now = self._clock()
        cached: defaultdict[str, list[CachedAnswer]] = defaultdict(list)
        for key in list(self._answers):
            if key.organization == organization:
                cached[key.name].append(self._answers[key])
        counts = self._counts.get(organization, Counter()).copy()
        for name, hits in [(name, counts[name, "hits"]) for name in parts]:
            counts.update({(part, "hits"): hits for part in parts[name]})
        rows = []
        for scope, of in [("total", names), *((name, [name]) for name in names)]:
            hits, misses, evictions = (
                sum(counts[name, what] for name in of) for what in ("hits", "misses", "evictions")
            )
            requests, answers = hits + misses, [answer for name in of for answer in cached[name]]
            rows.append(
                {
                    "scope": scope,
                    "entries": len(answers),
                    "hits": hits,
                    "misses": misses,
                    "hit_rate": ((20_000 * hits + requests) // (2 * requests)) / 100 if requests else None,
                    "evictions": evictions,
                    "bytes": sum(answer.size for answer in answers),
                    "ttl_seconds": TTL_SECONDS,
                    "oldest_age_seconds": max((int(now - answer.stored_at) for answer in answers), default=None),
                }
            )
        return rows

    async def _join_or_start(
        self, key: CacheKey, is_share: bool, compute: Compute, store: Callable[[bytes], None]
    ) -> bytes:
        """Join the running computation with this key, or start one and store its result; return the result."""
        while computation := self._computation(key, is_share):
            with suppress(Overloaded):
                return await _result(computation)

        async def run() -> bytes:
            body = await compute()
            store(body)
            return body

        task = asyncio.create_task(run())
        computation = self._running[key, is_share] = _Computation(task)
        task.add_done_callback(lambda done: self._finish(key, is_share, done))
        return await _result(computation)

    def _computation(self, key: CacheKey, is_share: bool) -> _Computation | None:
        """Return the running computation of an answer; None if there is none, or if it is being cancelled."""
        computation = self._running.get((key, is_share))
        return None if computation is None or computation.task.cancelling() else computation

    def _finish(self, key: CacheKey, is_share: bool, done: asyncio.Task[bytes]) -> None:
        # while it was being cancelled, a newer computation may have replaced it
        running = self._running.get((key, is_share))
        if running and running.task is done:
            del self._running[key, is_share]
        if not done.cancelled():
            done.exception()  # retrieve it, so that asyncio does not warn about an unretrieved exception


async def _result(computation: _Computation) -> bytes:
    """Wait for a computation and return its result. When the last waiting call ends, cancel the computation."""
    computation.waiting += 1
    try:
        return await asyncio.shield(computation.task)
    finally:
        computation.waiting -= 1
        if not computation.waiting:
            computation.task.cancel()  # no effect if it is done

"""Encoded answers, held for five minutes: one computation for any number of equal requests at a time."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cachetools import TTLCache

from queries import Scope

TTL_SECONDS: Final = 300
MOST_BYTES: Final = 64 << 20
_OVERHEAD_BYTES: Final = 512  # of a slot beside its body


class Slot(NamedTuple):
    """What an answer is held under: its entry's name, its scope with the days resolved, the organization's epoch."""

    name: str
    scope: Scope
    epoch: int = 0


class Held(NamedTuple):
    """An answer, and when it was stored by the clock of its cache."""

    body: bytes
    stored_at: float


class _Answers(TTLCache[Slot, Held]):
    """A TTLCache that tells of what it drops for want of space."""

    def __init__(self, clock: Callable[[], float], dropped: Callable[[Slot], None]) -> None:
        super().__init__(MOST_BYTES, TTL_SECONDS, clock, lambda held: len(held.body) + _OVERHEAD_BYTES)
        self._dropped = dropped

    def popitem(self) -> tuple[Slot, Held]:
        slot, held = super().popitem()
        self._dropped(slot)
        return slot, held


class AnswerCache:
    """Belongs to one event loop; nothing in it blocks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.stored = 0
        """How often an answer was stored; nothing leaves its slot in between but by its age."""
        self._counts: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._held = _Answers(clock, lambda slot: self.count(slot.scope.organization, slot.name, "evictions"))
        self._running: dict[Slot, asyncio.Task[bytes]] = {}

    def __len__(self) -> int:
        """How many answers are held, those that are too old perhaps included."""
        return len(self._held)

    def held(self, slot: Slot) -> bytes | None:
        """The answer held in a slot, if it is still young enough."""
        held = self.found(slot)
        return None if held is None else held.body

    def found(self, slot: Slot) -> Held | None:
        """The same, and since when it is held."""
        try:
            return self._held[slot]  # `get` would look twice
        except KeyError:
            return None

    def computing(self, slot: Slot) -> asyncio.Task[bytes] | None:
        """The computation of a slot that is under way, if there is one that is not being ended."""
        task = self._running.get(slot)
        return None if task is None or task.cancelling() else task

    def compute(self, slot: Slot, computation: Callable[[], Awaitable[bytes]]) -> asyncio.Task[bytes]:
        """Start the computation of a slot; its answer is held when it succeeds."""

        async def run() -> bytes:
            body = await computation()
            if len(body) + _OVERHEAD_BYTES <= MOST_BYTES:
                self._held[slot] = Held(body, self.clock())
                self.stored += 1
            return body

        task = asyncio.create_task(run())
        self._running[slot] = task
        task.add_done_callback(lambda done: self._finished(slot, done))
        return task

    def count(self, organization: str, name: str, what: str) -> None:
        """Count a hit, a miss or an eviction of one entry."""
        self._counts[organization][name, what] += 1

    def statistics(
        self, organization: str, names: list[str], parts: Mapping[str, list[str]] = MappingProxyType({})
    ) -> list[dict[str, Any]]:
        """The rows of cache-stats: the total first, then each of `names`; of one organization only.

        A hit of an answer is one of each of its `parts`.
        """
        now = self.clock()
        held: defaultdict[str, list[Held]] = defaultdict(list)
        for slot in list(self._held):
            if slot.scope.organization == organization:
                held[slot.name].append(self._held[slot])
        counts = self._counts.get(organization, Counter()).copy()
        for name, hits in [(name, counts[name, "hits"]) for name in parts]:
            counts.update({(part, "hits"): hits for part in parts[name]})
        of_each = [_row(name, held[name], counts, [name], now) for name in names]
        return [_row("total", [one for name in names for one in held[name]], counts, names, now), *of_each]

    def _finished(self, slot: Slot, done: asyncio.Task[bytes]) -> None:
        if self._running.get(slot) is done:  # else another one took its place when it was to end
            del self._running[slot]
        if not done.cancelled():
            done.exception()  # seen here, so that a failure nobody waits for any more is no warning


def _row(
    scope: str, held: list[Held], counts: Counter[tuple[str, str]], names: list[str], now: float
) -> dict[str, Any]:
    hits, misses, evictions = (sum(counts[name, what] for name in names) for what in ("hits", "misses", "evictions"))
    asked = hits + misses
    return {
        "scope": scope,
        "entries": len(held),
        "hits": hits,
        "misses": misses,
        "hit_rate": ((20_000 * hits + asked) // (2 * asked)) / 100 if asked else None,
        "evictions": evictions,
        "bytes": sum(len(one.body) for one in held),
        "ttl_seconds": TTL_SECONDS,
        "oldest_age_seconds": max((int(now - one.stored_at) for one in held), default=None),
    }

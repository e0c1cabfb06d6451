"""A scheduler for slots: organizations take turns when there are more clients than slots."""

import asyncio
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

RECENT_SECONDS: Final = 5.0
"""How long an organization counts as active after its last slot is released and its rests have ended."""


class _QueuedClient(NamedTuple):
    """A client of an organization, waiting for a slot."""

    is_share: bool
    given: asyncio.Future[None]


@dataclass(eq=False)
class _Queue:
    """Waiting clients of one organization, in order of arrival."""

    waiting: list[_QueuedClient] = field(default_factory=list)
    slots: int = 0
    """Number of slots in use by the organization."""
    rests: int = 0
    """Number of rests in progress, during which the organization gets no slot."""

    @property
    def first(self) -> _QueuedClient | None:
        """The next client, with shares last. Clients cancelled in this iteration of the event loop are skipped."""
        waiting = (one for one in self.waiting if not one.given.done())
        return min(waiting, key=lambda one: one.is_share, default=None)


class Scheduler:
    """Grants slots to organizations in turn. For use in one event loop.

    An organization with fewer slots than others goes first. An organization with a slot gets another only if a further
    slot stays free, and more than half of all slots only if no other organization had or wanted a slot recently. An
    organization that rests gets no slot. Within one organization, shares come last.
    """

    def __init__(self, slots: int) -> None:
        self._slots = self._free = slots
        self._left_at: dict[str, float] = {}
        """Times when organizations became idle, the earliest first."""
        self._may_rest = True
        self._queues: dict[str, _Queue] = {}
        """Queues by organization, in the order of their turns."""

    async def acquire(self, organization: str, is_share: bool = False) -> None:
        """Wait for a slot and acquire it; `release` must return it."""
        queue = self._queues.setdefault(organization, _Queue())
        self._left_at.pop(organization, None)
        waiting = _QueuedClient(is_share, asyncio.get_running_loop().create_future())
        queue.waiting.append(waiting)
        self._give()
        try:
            await waiting.given
        except asyncio.CancelledError:
            if waiting.given.done() and not waiting.given.cancelled():
                self.release(organization)
            else:
                queue.waiting.remove(waiting)
                self._forget_if_idle(organization)
            raise

    def release(self, organization: str, rest_seconds: float = 0) -> None:
        """Release an organization's slot for the next client; the organization then rests for `rest_seconds`."""
        queue = self._queues[organization]
        self._free += 1
        queue.slots -= 1
        if rest_seconds:
            queue.rests += 1
            asyncio.get_running_loop().call_later(rest_seconds, self._end_rest, organization)
        self._give()
        self._forget_if_idle(organization)

    def end_rests(self) -> None:
        """End all current rests, and ignore later rests."""
        self._may_rest = False
        self._give()

    def serves_others(self, organization: str) -> bool:
        """Return whether any other organization has a slot or is waiting for one."""
        return any(queue.slots or queue.first for name, queue in self._queues.items() if name != organization)

    def _end_rest(self, organization: str) -> None:
        self._queues[organization].rests -= 1
        self._give()
        self._forget_if_idle(organization)

    def _give(self) -> None:
        """Grant free slots to waiting clients."""
        while found := self._next():
            organization, waiting = found
            queue = self._queues[organization] = self._queues.pop(organization)  # its turn is now last
            queue.waiting.remove(waiting)
            queue.slots += 1
            self._free -= 1
            waiting.given.set_result(None)

    def _next(self) -> tuple[str, _QueuedClient] | None:
        """Return the next organization and its next client, or None if no waiting client may get a slot now. The
        organization with the fewest slots is next; in a tie, the first in turn.
        """
        found, slots = None, 0
        most = self._slots // 2 if self._others_ask() else self._slots
        for organization, queue in self._queues.items():
            if queue.rests and self._may_rest:
                continue
            may_have_one = self._free > 1 and queue.slots < most if queue.slots else self._free > 0
            if may_have_one and (found is None or queue.slots < slots) and (waiting := queue.first):
                found, slots = (organization, waiting), queue.slots
        return found

    def _others_ask(self) -> bool:
        """Return whether more than one organization is waiting for a slot, has a slot, or had a slot recently."""
        since = asyncio.get_running_loop().time() - RECENT_SECONDS
        for organization in [*takewhile(lambda name: self._left_at[name] <= since, self._left_at)]:
            del self._left_at[organization]
        return len(self._queues) + len(self._left_at) > 1

    def _forget_if_idle(self, organization: str) -> None:
        queue = self._queues[organization]
        if not (queue.waiting or queue.slots or queue.rests):
            del self._queues[organization]
            self._left_at[organization] = asyncio.get_running_loop().time()

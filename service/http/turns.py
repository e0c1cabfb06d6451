"""Turns: which asker gets the next of a few places, when more ask than there are places."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple


class Asker(NamedTuple):
    """A sender of queries of an organization: a session, an API key, a user of the identity provider, or a share."""

    name: str = ""
    is_share: bool = False


Askers = Callable[[], Iterable[Asker]]
"""The askers that wait for one place together, when it is given; others may join or leave until then."""

ANY_ASKER: Final = Asker()
"""An asker of an organization where it does not matter which one."""


@dataclass(eq=False)
class _QueuedQuery:
    askers: Askers
    turn: asyncio.Future[None]


@dataclass(eq=False)
class _Line:
    """The waiting queries of one organization, in order of arrival."""

    waiting: list[_QueuedQuery] = field(default_factory=list)
    places: int = 0
    """Places that the organization has now."""
    turns: int = 0
    """Places that it was given since it last neither waited nor had one."""
    rests: int = 0
    """Rests that have not ended; until then it gets no place."""
    last_turns: dict[Asker, int] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether a query waits; not one that was cancelled in this turn of the event loop."""
        return any(not waiting.turn.done() for waiting in self.waiting)

    def take_first(self) -> _QueuedQuery:
        """Remove and return the next: shares come last; of the others, the one served longest ago is first."""
        first = min((one for one in self.waiting if not one.turn.done()), key=self._order)  # of equals, who came first
        self.waiting.remove(first)
        self.turns += 1
        self.last_turns[self._order(first)[-1]] = self.turns
        return first

    def _order(self, waiting: _QueuedQuery) -> tuple[bool, int, Asker]:
        """When it is its turn, by the best of its askers, and that asker."""
        orders = ((asker.is_share, self.last_turns.setdefault(asker, self.turns), asker) for asker in waiting.askers())
        return min(orders, default=(True, self.turns, ANY_ASKER))


class Turns:
    """Gives out places: to organizations in turn, and within one to its askers in turn. Belongs to one event loop.

    An organization that has fewer places than others goes first; one that has a place gets another one only if one more
    stays free, for the others. While it rests, it gets none.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._lines: dict[str, _Line] = {}
        """By organization, in the order of their turns."""

    async def take(self, organization: str, askers: Askers) -> None:
        """Wait for a place, which `give_back` must be called for."""
        line = self._lines.setdefault(organization, _Line())
        waiting = _QueuedQuery(askers, asyncio.get_running_loop().create_future())
        line.waiting.append(waiting)
        self._give()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled():
                self.give_back(organization)
            else:
                line.waiting.remove(waiting)
                self._forget_if_idle(organization)
            raise

    def give_back(self, organization: str, rest_seconds: float = 0) -> None:
        """Return a place of an organization, which gets no other for so long. It goes to whose turn it is."""
        line = self._lines[organization]
        self._free += 1
        line.places -= 1
        if rest_seconds:
            line.rests += 1
            asyncio.get_running_loop().call_later(rest_seconds, self._end_rest, organization)
        self._give()
        self._forget_if_idle(organization)

    def serves_others(self, organization: str) -> bool:
        """Whether other organizations wait or have a place."""
        return any(line.waits or line.places for name, line in self._lines.items() if name != organization)

    def _end_rest(self, organization: str) -> None:
        self._lines[organization].rests -= 1
        self._give()
        self._forget_if_idle(organization)

    def _give(self) -> None:
        """Give free places to waiting queries that may have them."""
        while (organization := self._next_organization()) is not None:
            line = self._lines[organization] = self._lines.pop(organization)  # its next turn comes after the others'
            line.places += 1
            self._free -= 1
            line.take_first().turn.set_result(None)

    def _next_organization(self) -> str | None:
        """The first in turn of those with the fewest places."""
        may_have_one = (
            (line.places, turn, organization)
            for turn, (organization, line) in enumerate(self._lines.items())
            if line.waits and not line.rests and (self._free > 1 or (self._free and not line.places))
        )
        return min(may_have_one, default=(0, 0, None))[-1]

    def _forget_if_idle(self, organization: str) -> None:
        line = self._lines[organization]
        if not line.waiting and not line.places and not line.rests:
            del self._lines[organization]

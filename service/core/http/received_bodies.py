"""Request bodies in memory: limited for each organization and in total, and shared fairly between organizations."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from service.core.http.errors import BodyTooLarge, InvalidBody, Overloaded

MAX_BYTES: Final = 32 << 20
"""Maximum total size of all bodies. It may be exceeded: organizations below their equal share lose no bodies.
"""
MAX_ORGANIZATION_BYTES: Final = 16 << 20
"""Maximum total size of the bodies of one organization, or of one client address before authentication."""

FIRST_BYTES: Final = 65_536
"""Size of the first part of a body, which is read without a pause; most bodies are not larger."""


@dataclass(eq=False)
class _Body:
    """A body in memory, or the part of it that has arrived."""

    owner: str
    deadline: asyncio.Timeout
    size: int = 0
    is_evicted: bool = False


class ReceivedBodies:
    """The request bodies in memory: bytes are counted by owner, and unfinished bodies evicted when a limit is exceeded.

    An owner is an organization, or a client address before authentication. Past the limit for one owner, its oldest
    unfinished body is evicted; past the total limit, the oldest unfinished body of the owner with the most bytes above
    its equal share. A request with an evicted body is answered with Overloaded. After the first FIRST_BYTES of a body,
    the event loop reads one chunk of each owner's bodies at a time and does other work in between. For use in one
    event loop.
    """

    def __init__(
        self,
        source_of: Callable[[Scope], str],
        max_bytes: int = MAX_BYTES,
        max_organization_bytes: int = MAX_ORGANIZATION_BYTES,
    ) -> None:
        """`source_of` returns the client address for a request."""
        self._source_of = source_of
        self._max_bytes, self._max_organization_bytes = max_bytes, max_organization_bytes
        self._held = Counter[str]()
        self._unfinished: dict[str, dict[_Body, None]] = {}
        """Unfinished bodies by owner, oldest first."""
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """Locks by owner; the body that has just read a chunk holds its owner's lock for one round of the event loop.
        """

    @property
    def bytes_held(self) -> int:
        """The number of bytes in memory."""
        return self._held.total()

    @asynccontextmanager
    async def receive(self, request: Request, max_bytes: int, too_large: BodyTooLarge) -> AsyncIterator[bytes]:
        """Read the body of a request; its bytes count until the with block ends.

        Raises `too_large` as soon as the body is larger than `max_bytes`, InvalidBody if it is cut off, and Overloaded
        if it is evicted.
        """
        caller = request.scope.get("caller")
        body = _Body(caller.organization if caller else self._source_of(request.scope), asyncio.timeout(None))
        self._unfinished.setdefault(body.owner, {})[body] = None
        try:
            content = await self._read(body, request, max_bytes, too_large)
            self._finish(body)
            yield content
        finally:
            self._finish(body)
            self._release(body)

    async def _read(self, body: _Body, request: Request, max_bytes: int, too_large: BodyTooLarge) -> bytes:
        content, turn = bytearray(), self._turns.setdefault(body.owner, asyncio.Lock())
        try:
            async with body.deadline:
                async for chunk in request.stream():
                    content += chunk
                    self._add(body, len(chunk))
                    if len(content) > max_bytes:
                        raise too_large
                    if len(content) > FIRST_BYTES:  # the connection is not read while its body waits
                        async with turn:
                            await asyncio.sleep(0)
        except ClientDisconnect as error:
            raise InvalidBody("Incomplete body: shorter than Content-Length.", "Send the whole body.") from error
        except TimeoutError as error:  # eviction is the only deadline
            raise Overloaded from error
        if body.is_evicted:  # although it is complete
            raise Overloaded
        return bytes(content)

    def _add(self, body: _Body, size: int) -> None:
        if body.is_evicted:  # its request is about to end
            return
        body.size += size
        self._held[body.owner] += size
        while self._held[body.owner] > self._max_organization_bytes and self._unfinished.get(body.owner):
            self._evict(body.owner)
        while self.bytes_held > self._max_bytes:
            share = self._max_bytes / len(self._held)
            above = [owner for owner in self._unfinished if self._held[owner] > share]
            if not above:
                return
            self._evict(max(above, key=self._held.__getitem__))

    def _evict(self, owner: str) -> None:
        """Evict the owner's oldest unfinished body, which ends its request."""
        body = next(iter(self._unfinished[owner]))
        self._finish(body)
        self._release(body)
        body.is_evicted = True
        body.deadline.reschedule(asyncio.get_running_loop().time())

    def _finish(self, body: _Body) -> None:
        """Remove a body from the unfinished bodies."""
        if unfinished := self._unfinished.get(body.owner):
            unfinished.pop(body, None)
            if not unfinished:
                del self._unfinished[body.owner]

    def _release(self, body: _Body) -> None:
        """Subtract a body's bytes from the counts."""
        self._held[body.owner] -= body.size
        body.size = 0
        if not self._held[body.owner]:
            del self._held[body.owner]

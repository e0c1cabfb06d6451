"""What a client may not do to a connection: say nothing, trickle, send headers without end, never read, be too many.

One look at every open connection twice a second keeps the deadlines; a request costs a few attributes and no timer.
Time in which the service works, or lets a client wait, counts for nobody.
"""

import asyncio
import time
from collections.abc import Iterable
from enum import Enum
from functools import partial
from typing import Final, cast

import httptools
import orjson
from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.http.errors import HeadersTooLarge, Malformed, Problem, TimedOut
from service.http.middleware import RequestMiddleware
from service.server.headers import MOST_HEADER_BYTES, MOST_URL_BYTES, check_host, check_size, check_upgrade
from service.server.slots import Places
from service.server.sockets import Lingering, reset_when_closed, unread_bytes

SWEEP_SECONDS: Final = 0.5
"""Between two looks at the connections; deadlines are kept as exactly as that."""
IDLE_SECONDS: Final = 5.0
"""From connecting, or from the last answer, to the first byte of a request."""
HEADER_SECONDS: Final = 5.0
"""From the first byte of a request to the end of its header, however its bytes come."""
BODY_PAUSE_SECONDS: Final = 10.0
"""Between two pieces of a body."""
BODY_SECONDS: Final = 60.0
"""From the end of a header to the end of its body: 4 MiB get through at 70 KiB a second."""
UNREAD_SECONDS: Final = 30.0
"""In which a client takes 64 KiB of an answer that waits for it, or all of it."""
LEAST_READ: Final = 65_536
LINGER_SECONDS: Final = 2.0
"""In which what a client still sends is thrown away after its request was refused: it is to read the refusal."""

PIECE_BYTES: Final = 16_384
"""Of what has come, for the parser at a time: so much may be beyond a limit before that is seen."""
MOST_UNTOLD_BYTES: Final = MOST_URL_BYTES + MOST_HEADER_BYTES
"""Since the last beginning of a request or piece of a body: the parser tells of a header only when it has ended."""
MOST_WAITING: Final = 64
"""Requests of one connection that wait for the one before them; a source has 60 answered in a minute."""


class Guard:
    """What the connections of one server share: the way to refuse, the places and the time."""

    def __init__(self, front: RequestMiddleware, places: Places) -> None:
        self.front = front
        self.places = places
        self.now = 0.0  # at the last look; it stands still with the process, when no client can be heard

    def protocol(self) -> type["GuardedProtocol"]:
        """The protocol of connections that this guards."""
        return type("Protocol", (GuardedProtocol,), {"guard": self})

    async def sweep(self, connections: Iterable[asyncio.Protocol]) -> None:
        """End, for ever, connections whose time is up."""
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.now += min(time.monotonic() - looked_at, 2 * SWEEP_SECONDS)
            looked_at = time.monotonic()
            for number, connection in enumerate([*connections], 1):
                if cast("GuardedProtocol", connection).end_if_late() or number % 50 == 0:
                    await asyncio.sleep(0)  # whoever waits for an answer comes first


class _Awaited(Enum):
    """What a connection waits for."""

    REQUEST = "the first byte of a request"
    HEADER = "the end of a header"
    BODY = "the end of a body"
    END = "nothing more from its client"


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol within limits. What it refuses counts for its source and is told in JSON."""

    guard: Guard

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin, or close at once where there is no room."""
        super().connection_made(transport)
        self._awaited = _Awaited.REQUEST
        self._since = self._moved = self._unread_since = self.guard.now
        self._unread = self._untold_bytes = 0
        self._refusal: Problem | None = None
        self._source = self.guard.places.take(self.client)
        if self._source is None:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        super().connection_lost(exc)
        if self._source is not None:
            self.guard.places.leave(self._source)

    def data_received(self, data: bytes) -> None:
        """Read on. Whatever is wrong with the request ends the connection."""
        if self._awaited is _Awaited.END:
            return
        try:
            for begin in range(0, len(data), PIECE_BYTES):
                self._feed(data[begin : begin + PIECE_BYTES])
        except (httptools.HttpParserError, Problem) as error:
            found = error if isinstance(error, Problem) else error.__context__
            self._refuse(found if isinstance(found, Problem) else Malformed())
        self._moved = self.guard.now
        if self._awaited is not _Awaited.REQUEST and self.cycle is not None:  # an answer may come before its end
            self.cycle.transport = Lingering(self.transport, self.linger)
            self.cycle.receive = partial(self._receive, self.cycle)  # type: ignore[method-assign]

    def _feed(self, data: bytes) -> None:
        self._untold_bytes += len(data)
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:  # to what is not spoken here: the next request follows
                data = data[upgrade.args[0] :]
        if self._untold_bytes > MOST_UNTOLD_BYTES:
            raise HeadersTooLarge
        if self._awaited is _Awaited.HEADER:
            check_size(self.url, self.headers, self._untold_bytes + PIECE_BYTES)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._awaited = _Awaited.HEADER
        self._since = self.guard.now
        self._untold_bytes = 0

    def on_headers_complete(self) -> None:
        """A request can be answered. Raises UrlTooLong, HeadersTooLarge or Malformed."""
        check_size(self.url, self.headers, self._untold_bytes + PIECE_BYTES)
        check_host(self.headers, self.parser.get_http_version())
        if self.parser.should_upgrade():
            check_upgrade(self.headers)
        if len(self.pipeline) >= MOST_WAITING:
            raise Malformed("Too many requests wait on this connection.", "Wait for answers before you send more.")
        super().on_headers_complete()
        self.headers = []  # what follows a body does not change a request that is under way
        self._awaited = _Awaited.BODY
        self._since = self.guard.now

    def on_body(self, body: bytes) -> None:
        """A piece of a body has come."""
        super().on_body(body)
        self._untold_bytes = 0

    def on_message_complete(self) -> None:
        """A request has come whole."""
        if self.cycle is not None:
            super().on_message_complete()
        self._awaited = _Awaited.REQUEST
        self._since = self.guard.now

    async def _receive(self, cycle: RequestResponseCycle) -> ASGIReceiveEvent:
        """What an application gets of a body that has not come whole. Raises what is wrong with it."""
        event = await RequestResponseCycle.receive(cycle)
        if self._refusal and cycle.more_body:
            raise self._refusal
        return event

    def on_response_complete(self) -> None:
        """Turn to the next request; uvicorn would set a timer besides."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._refusal:
            self._turn_away(self._refusal)
        elif self._awaited is _Awaited.REQUEST:
            self._since = self.guard.now

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, problem: Problem) -> None:
        """Take nothing more from this client, and tell it why when it is its turn."""
        awaited, self._awaited = self._awaited, _Awaited.END
        self._refusal = problem
        if not self._is_answering():
            if awaited is _Awaited.BODY:  # its request is answered already
                self.transport.close()
            else:
                self._turn_away(problem)
        elif awaited is _Awaited.BODY:
            self.cycle.keep_alive = False
            self.cycle.message_event.set()  # whoever waits for the body learns it

    def _turn_away(self, problem: Problem) -> None:
        told, headers = self.guard.front.rejected(self.client, problem)
        body = orjson.dumps(told.body)
        own = [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        lines = [b"%s: %s\r\n" % pair for pair in (*self.server_state.default_headers, *own, *headers)]
        self.transport.write(b"".join((STATUS_LINE[told.status], *lines, b"\r\n", body)))
        self.linger()

    def linger(self) -> None:
        """Say and take nothing more, and close when the client has had time to read."""
        self._awaited, self._since, self._refusal = _Awaited.END, self.guard.now, None
        self.pipeline.clear()
        self.transport.write_eof()
        self.flow.resume_reading()

    def end_if_late(self) -> bool:
        """End this connection if its time is up, and tell whether it was."""
        if self._is_unread():
            self.cut()
            return True
        if self.transport.is_closing():
            return False
        if self.flow.read_paused or (self._is_answering() and self.cycle.waiting_for_100_continue):
            self._since = self._moved = self.guard.now
        return self._is_late()

    def _is_late(self) -> bool:
        now = self.guard.now - SWEEP_SECONDS  # so much later than it says may be when something happened
        waited, paused = now - self._since, now - self._moved
        silence = IDLE_SECONDS if self._awaited is _Awaited.REQUEST else LINGER_SECONDS
        if self._awaited is _Awaited.HEADER and waited > HEADER_SECONDS:
            self._refuse(TimedOut("header"))
        elif self._awaited is _Awaited.BODY and (waited > BODY_SECONDS or paused > BODY_PAUSE_SECONDS):
            self._refuse(TimedOut("body"))
        elif self._awaited in (_Awaited.REQUEST, _Awaited.END) and waited > silence and not self._is_answering():
            self.transport.close()
        else:
            return False
        return True

    def cut(self) -> None:
        """End this connection at once; the system is not to keep what its client does not take, either."""
        reset_when_closed(self.transport.get_extra_info("socket"))
        self.transport.abort()

    def _is_unread(self) -> bool:
        """Whether the client takes nothing of what waits for it."""
        left = self.transport.get_write_buffer_size()
        if left:  # it shrinks by leaps only: the system holds megabytes
            left += unread_bytes(self.transport.get_extra_info("socket"))
        if left == 0 or self._unread == 0 or left <= self._unread - LEAST_READ:
            self._unread, self._unread_since = left, self.guard.now
        self._unread = max(self._unread, left)
        return self.guard.now - self._unread_since > UNREAD_SECONDS

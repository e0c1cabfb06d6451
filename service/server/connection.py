"""Limits of a connection: idle time, slow or oversized headers and bodies, unread answers, too many connections.

A sweep over all open connections twice a second enforces the deadlines; a request costs a few attributes and no timer.
Time in which the service itself works, or makes a client wait, does not count.
"""

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Final, cast

import httptools
import orjson
from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.http.errors import HeadersTooLarge, MalformedRequest, Problem, RequestTimeout, UrlTooLong
from service.http.middleware import RequestMiddleware
from service.server.slots import ConnectionSlots, LingeringTransport, set_reset_on_close, unacknowledged_bytes

SWEEP_SECONDS: Final = 0.5
"""Between two looks at the connections; deadlines are kept as exactly as that."""
IDLE_TIMEOUT_SECONDS: Final = 5.0
"""From connecting, or from the last answer, to the first byte of a request."""
HEADER_TIMEOUT_SECONDS: Final = 5.0
"""From the first byte of a request to the end of its header, however its bytes come."""
BODY_IDLE_TIMEOUT_SECONDS: Final = 10.0
"""Between two pieces of a body."""
BODY_TIMEOUT_SECONDS: Final = 60.0
"""From the end of a header to the end of its body: 4 MiB get through at 70 KiB a second."""
WRITE_TIMEOUT_SECONDS: Final = 30.0
"""In which a client takes 64 KiB of an answer that waits for it, or all of it."""
MIN_READ_BYTES: Final = 65_536
LINGER_SECONDS: Final = 2.0
"""In which what a client still sends is thrown away after its request was refused: it is to read the refusal."""

MAX_URL_BYTES: Final = 8_192
MAX_HEADER_BYTES: Final = 65_536
"""Of the names and values of a request's headers, each with the four bytes that part it from the next."""
MAX_HEADERS: Final = 100
CHUNK_BYTES: Final = 16_384
"""Of what has come, for the parser at a time: so much may be beyond a limit before that is seen."""
MAX_UNPARSED_BYTES: Final = MAX_URL_BYTES + MAX_HEADER_BYTES
"""Since the last beginning of a request or piece of a body: the parser reports a header only when it has ended."""
MAX_PIPELINED: Final = 64
"""Requests of one connection that wait for the one before them; a source has 60 answered in a minute."""


_HOST: Final = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)

Headers = Sequence[tuple[bytes, bytes]]


class ConnectionLimits:
    """What the connections of one server share: how to refuse a request, the slots, and the time of the last sweep."""

    def __init__(self, middleware: RequestMiddleware, slots: ConnectionSlots) -> None:
        self.middleware = middleware
        self.slots = slots
        self.now = 0.0  # at the last sweep; it stands still while the process does, when no client can be heard

    def protocol(self) -> type["LimitedHttpProtocol"]:
        """The protocol class of connections within these limits."""
        return type("Protocol", (LimitedHttpProtocol,), {"limits": self})

    async def sweep(self, connections: Iterable[asyncio.Protocol]) -> None:
        """Close connections that are past a deadline, until cancelled."""
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.now += min(time.monotonic() - looked_at, 2 * SWEEP_SECONDS)
            looked_at = time.monotonic()
            for number, connection in enumerate([*connections], 1):
                if cast("LimitedHttpProtocol", connection).close_if_expired() or number % 50 == 0:
                    await asyncio.sleep(0)  # whoever waits for an answer comes first


class _State(Enum):
    """What a connection waits for from its client."""

    IDLE = "the first byte of a request"
    HEADER = "the end of a header"
    BODY = "the end of a body"
    CLOSING = "nothing more"


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol within limits. What it refuses counts for its source and is answered in JSON.

    The parser's callbacks move a connection from state to state; close_if_expired() looks at the deadlines:

        state     next state, and what leads to it      deadline, and what happens then
        IDLE      HEADER   on_message_begin             IDLE_TIMEOUT_SECONDS from _state_since: closed in silence
        HEADER    BODY     on_headers_complete          HEADER_TIMEOUT_SECONDS from _state_since: 408
        BODY      IDLE     on_message_complete          BODY_TIMEOUT_SECONDS from _state_since, or
                                                        BODY_IDLE_TIMEOUT_SECONDS from _received_at: 408
        any       CLOSING  _reject: bad bytes, a limit, a deadline
        CLOSING   -        what comes is thrown away    LINGER_SECONDS from _state_since: closed
        any       -        an answer is not read        WRITE_TIMEOUT_SECONDS from _stalled_since: reset

    A request without a body passes BODY within one call. While an answer is computed IDLE and CLOSING have no deadline,
    and _state_since starts anew when it has been sent. _received_at is when bytes came last. _unread_bytes wait for the
    client to read them; _stalled_since is when they last were none or MIN_READ_BYTES more. _unparsed_bytes came since
    the parser last reported the beginning of a request or a piece of a body: it reports a header when it has ended.
    """

    limits: ConnectionLimits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin, or close at once when there is no slot."""
        super().connection_made(transport)
        self._state = _State.IDLE
        self._state_since = self._received_at = self._stalled_since = self.limits.now
        self._unread_bytes = self._unparsed_bytes = 0
        self._error: Problem | None = None
        self._source = self.limits.slots.acquire(self.client)
        if self._source is None:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the slot back."""
        super().connection_lost(exc)
        if self._source is not None:
            self.limits.slots.release(self._source)

    def data_received(self, data: bytes) -> None:
        """Parse what came. Whatever is wrong with a request ends the connection."""
        if self._state is _State.CLOSING:
            return
        try:
            for begin in range(0, len(data), CHUNK_BYTES):
                self._feed(data[begin : begin + CHUNK_BYTES])
        except (httptools.HttpParserError, Problem) as error:
            found = error if isinstance(error, Problem) else error.__context__
            self._reject(found if isinstance(found, Problem) else MalformedRequest())
        self._received_at = self.limits.now
        if self._state is not _State.IDLE and self.cycle is not None:  # an answer may come before its end
            self.cycle.transport = LingeringTransport(self.transport, self.linger)
            self.cycle.receive = partial(self._receive, self.cycle)  # type: ignore[method-assign]

    def _feed(self, data: bytes) -> None:
        self._unparsed_bytes += len(data)
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:  # to what is not spoken here: the next request follows
                data = data[upgrade.args[0] :]
        if self._unparsed_bytes > MAX_UNPARSED_BYTES:
            raise HeadersTooLarge
        if self._state is _State.HEADER:
            check_size(self.url, self.headers, self._unparsed_bytes + CHUNK_BYTES)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._state = _State.HEADER
        self._state_since = self.limits.now
        self._unparsed_bytes = 0

    def on_headers_complete(self) -> None:
        """A request can be answered. Raises UrlTooLong, HeadersTooLarge or MalformedRequest."""
        check_size(self.url, self.headers, self._unparsed_bytes + CHUNK_BYTES)
        check_headers(self.headers, self.parser.get_http_version(), is_upgrade=self.parser.should_upgrade())
        if len(self.pipeline) >= MAX_PIPELINED:
            raise MalformedRequest(
                "Too many requests wait on this connection.", "Wait for answers before you send more."
            )
        super().on_headers_complete()
        self.headers = []  # what follows a body does not change a request that is under way
        self._state = _State.BODY
        self._state_since = self.limits.now

    def on_body(self, body: bytes) -> None:
        """A piece of a body has come."""
        super().on_body(body)
        self._unparsed_bytes = 0

    def on_message_complete(self) -> None:
        """A request has come whole."""
        if self.cycle is not None:
            super().on_message_complete()
        self._state = _State.IDLE
        self._state_since = self.limits.now

    async def _receive(self, cycle: RequestResponseCycle) -> ASGIReceiveEvent:
        """What an application receives of a body. Raises what is wrong with the rest, once that is known."""
        event = await RequestResponseCycle.receive(cycle)
        if self._error and cycle.more_body:
            raise self._error
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
        elif self._error:
            self._send_error(self._error)
        elif self._state is _State.IDLE:
            self._state_since = self.limits.now

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _reject(self, problem: Problem) -> None:
        """Take nothing more from this client, and answer why once the requests before are answered."""
        state, self._state = self._state, _State.CLOSING
        self._error = problem
        if not self._is_answering():
            if state is _State.BODY:  # its request is answered already
                self.transport.close()
            else:
                self._send_error(problem)
        elif state is _State.BODY:
            self.cycle.keep_alive = False
            self.cycle.message_event.set()  # whoever waits for the body learns it

    def _send_error(self, problem: Problem) -> None:
        answer, headers = self.limits.middleware.rejected(self.client, problem)
        body = orjson.dumps(answer.body)
        own = [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        lines = [b"%s: %s\r\n" % pair for pair in (*self.server_state.default_headers, *own, *headers)]
        self.transport.write(b"".join((STATUS_LINE[answer.status], *lines, b"\r\n", body)))
        self.linger()

    def linger(self) -> None:
        """Send and take nothing more, and close when the client has had time to read."""
        self._state, self._state_since, self._error = _State.CLOSING, self.limits.now, None
        self.pipeline.clear()
        self.transport.write_eof()
        self.flow.resume_reading()

    def close_if_expired(self) -> bool:
        """Close this connection if it is past a deadline; whether it was."""
        if self._is_stalled():
            self.abort()
            return True
        if self.transport.is_closing():
            return False
        if self.flow.read_paused or (self._is_answering() and self.cycle.waiting_for_100_continue):
            self._state_since = self._received_at = self.limits.now
        return self._close_expired()

    def _close_expired(self) -> bool:
        now = self.limits.now - SWEEP_SECONDS  # so much later than it says may be when something happened
        in_state, idle = now - self._state_since, now - self._received_at
        idle_timeout = IDLE_TIMEOUT_SECONDS if self._state is _State.IDLE else LINGER_SECONDS
        if self._state is _State.HEADER and in_state > HEADER_TIMEOUT_SECONDS:
            self._reject(RequestTimeout("header"))
        elif self._state is _State.BODY and (in_state > BODY_TIMEOUT_SECONDS or idle > BODY_IDLE_TIMEOUT_SECONDS):
            self._reject(RequestTimeout("body"))
        elif self._state in (_State.IDLE, _State.CLOSING) and in_state > idle_timeout and not self._is_answering():
            self.transport.close()
        else:
            return False
        return True

    def abort(self) -> None:
        """Reset this connection at once, so that the system drops what its client does not read, too."""
        set_reset_on_close(self.transport.get_extra_info("socket"))
        self.transport.abort()

    def _is_stalled(self) -> bool:
        """Whether the client has read nothing for WRITE_TIMEOUT_SECONDS of what waits for it."""
        left = self.transport.get_write_buffer_size()
        if left:  # it shrinks by leaps only: the system holds megabytes
            left += unacknowledged_bytes(self.transport.get_extra_info("socket"))
        if left == 0 or self._unread_bytes == 0 or left <= self._unread_bytes - MIN_READ_BYTES:
            self._unread_bytes, self._stalled_since = left, self.limits.now
        self._unread_bytes = max(self._unread_bytes, left)
        return self.limits.now - self._stalled_since > WRITE_TIMEOUT_SECONDS


def check_size(url: bytes, headers: Headers, max_bytes: int) -> None:
    """Check URL and headers, of which at most `max_bytes` have come. Raises UrlTooLong or HeadersTooLarge."""
    if len(url) > MAX_URL_BYTES:
        raise UrlTooLong(MAX_URL_BYTES)
    if len(headers) > MAX_HEADERS or (
        max_bytes > MAX_HEADER_BYTES  # else they cannot be too large
        and sum(len(name) + len(value) + 4 for name, value in headers) > MAX_HEADER_BYTES
    ):
        raise HeadersTooLarge


def check_headers(headers: Headers, version: str, *, is_upgrade: bool) -> None:
    """Check for one valid Host (RFC 9112, 3.2), and for no body beside Upgrade. Raises MalformedRequest."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 and (hosts or version == "1.1"):
        raise MalformedRequest("There must be one header Host.", "Send the name that you connect to, once.")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise MalformedRequest("The header Host names no host.", "Send the name that you connect to, and its port.")
    if is_upgrade and any(name in {b"content-length", b"transfer-encoding"} for name, _ in headers):
        raise MalformedRequest("A body and the header Upgrade do not go together.", "Send it without Upgrade.")

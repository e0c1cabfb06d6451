"""Limits on connections: their number, idle time, slow or oversized headers and bodies, and unread responses.

Twice a second, a sweep over all open connections enforces the deadlines, so requests need no timers. Time during
which the service computes an answer or makes a client wait does not count.
"""

import asyncio
import socket
import struct
import time
from collections.abc import Iterable
from enum import Enum
from functools import partial
from typing import Final, cast
from urllib.parse import unquote

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.core.http.errors import HeadersTooLarge, MalformedRequest, Problem, RequestTimeout
from service.core.http.middleware import RequestMiddleware
from service.server.exchange import Exchange, encode_head
from service.server.headers import MAX_HEADER_BYTES, MAX_URL_BYTES, check_headers, check_size
from service.server.reading import BufferReader, SharedInput
from service.server.slots import ConnectionSlots, unacknowledged_bytes

SWEEP_SECONDS: Final = 0.5
"""Time between two sweeps over the connections, and so the precision of all deadlines."""
IDLE_TIMEOUT_SECONDS: Final = 5.0
"""Maximum time from connecting, or from the last response, to the first byte of a request."""
PROXY_IDLE_TIMEOUT_SECONDS: Final = 75.0
"""IDLE_TIMEOUT_SECONDS for trusted proxies: longer than the proxy's own idle timeout (nginx: 60 seconds), so that the
proxy closes first. If the server closed while a POST was in flight, the proxy could not retry it and would answer
502."""
HEADER_TIMEOUT_SECONDS: Final = 5.0
"""Maximum time from the first byte of a request to the end of its header."""
BODY_IDLE_TIMEOUT_SECONDS: Final = 10.0
"""Maximum time between two chunks of a body."""
BODY_TIMEOUT_SECONDS: Final = 60.0
"""Maximum time from the end of a header to the end of its body: 4 MiB at 70 KiB per second."""
WRITE_TIMEOUT_SECONDS: Final = 30.0
"""Time within which a client must read MIN_READ_BYTES of a response, or the rest of it."""
MIN_READ_BYTES: Final = 65_536
LINGER_SECONDS: Final = 2.0
"""How long input is discarded after an error response, so that the client can read the response before the close."""

CHUNK_BYTES: Final = 16_384
"""Bytes passed to the parser at a time: a limit may be exceeded by this much before it is noticed."""
MAX_UNPARSED_BYTES: Final = MAX_URL_BYTES + MAX_HEADER_BYTES
"""Maximum bytes without a parser event. This limits the headers, which the parser reports only when complete."""
MAX_WAITING_BYTES: Final = 32_768
"""Unconsumed bytes of a body at which reading pauses, because uvicorn copies them whenever it appends more."""
MAX_PIPELINED: Final = 64
"""Maximum number of pipelined requests waiting on a connection; the rate limit is 60 per minute anyway."""


class ConnectionLimits:
    """State shared by the connections of one server: middleware, slots, input and the clock for deadlines."""

    def __init__(self, middleware: RequestMiddleware, slots: ConnectionSlots) -> None:
        self.middleware = middleware
        self.slots = slots
        self.input = SharedInput()
        self.now = 0.0  # advances at each sweep, but not while the process is blocked and cannot read

    def protocol(self) -> type["LimitedHttpProtocol"]:
        """Return a protocol class for uvicorn with these limits."""
        return type("Protocol", (LimitedHttpProtocol,), {"limits": self})

    async def sweep(self, connections: Iterable[asyncio.Protocol]) -> None:
        """Close connections that are past a deadline, until cancelled."""
        swept_at = time.monotonic()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.now += min(time.monotonic() - swept_at, 2 * SWEEP_SECONDS)
            swept_at = time.monotonic()
            for number, connection in enumerate([*connections], 1):
                if cast("LimitedHttpProtocol", connection).close_if_expired() or number % 50 == 0:
                    await asyncio.sleep(0)  # let requests run in between


class _State(Enum):
    """The next event that a connection expects from its client."""

    IDLE = "the first byte of a request"
    HEADER = "the end of a header"
    BODY = "the end of a body"
    CLOSING = "nothing more"


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. Rejected requests count towards the rate limit and are answered in JSON.

    The parser's callbacks move a connection from state to state; close_if_expired() looks at the deadlines:

        state     next state, and the event             deadline, and its effect
        IDLE      HEADER   on_message_begin             _idle_timeout from _state_since: closed silently
        HEADER    BODY     on_headers_complete          HEADER_TIMEOUT_SECONDS from _state_since: 408
        BODY      IDLE     on_message_complete          BODY_TIMEOUT_SECONDS from _state_since, or
                                                        BODY_IDLE_TIMEOUT_SECONDS from _received_at: 408
                  CLOSING  answered before its end
        any       CLOSING  _reject: malformed request, limit, deadline
        CLOSING   -        input is discarded           LINGER_SECONDS from _state_since: closed
        any       -        a response is not read       WRITE_TIMEOUT_SECONDS from _stalled_since: reset

    A request without a body passes through BODY within one call. While a response is computed, IDLE and CLOSING have no
    deadline; _state_since restarts when it has been sent. _received_at is the time of the last input. The
    client has not read _unread_bytes of the output; _stalled_since is the time when they were last 0 or shrank by
    MIN_READ_BYTES. _unparsed_bytes arrived since the last parser event: the start of a request, or a chunk of a body.
    """

    limits: ConnectionLimits
    cycle: Exchange

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Initialize the connection, or close it if no slot is free."""
        super().connection_made(transport)
        self._state = _State.IDLE
        self._state_since = self._received_at = self._stalled_since = self.limits.now
        self._unread_bytes = self._unparsed_bytes = 0
        self._error: Problem | None = None
        self._source = self.limits.slots.acquire(self.client)
        self._idle_timeout = PROXY_IDLE_TIMEOUT_SECONDS if self._source == "" else IDLE_TIMEOUT_SECONDS
        transport.set_protocol(BufferReader(self, self.limits.input))
        if self._source is None:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the slot."""
        super().connection_lost(exc)
        if self._source is not None:
            self.limits.slots.release(self._source)

    def data_received(self, data: bytes | memoryview) -> None:
        """Parse the data, or discard it if the connection is closing. Any error in a request ends the connection."""
        if self._state is _State.CLOSING:
            self.limits.input.discard_in_turn(self.transport)
            return
        try:
            for begin in range(0, len(data), CHUNK_BYTES):
                chunk = data[begin : begin + CHUNK_BYTES]
                self._unparsed_bytes += len(chunk)
                while chunk:
                    try:
                        self.parser.feed_data(chunk)
                        break
                    except httptools.HttpParserUpgrade as upgrade:  # not supported: continue with the next request
                        chunk = chunk[upgrade.args[0] :]
                if self._unparsed_bytes > MAX_UNPARSED_BYTES:
                    raise HeadersTooLarge
                if self._state is _State.HEADER:
                    check_size(self.url, self.headers, self._unparsed_bytes + CHUNK_BYTES)
        except (httptools.HttpParserError, Problem) as error:
            cause = error if isinstance(error, Problem) else error.__context__
            self._reject(cause if isinstance(cause, Problem) else MalformedRequest())
        self._received_at = self.limits.now

    def on_message_begin(self) -> None:
        """Begin a request, and start the deadline for its header."""
        super().on_message_begin()
        self._state = _State.HEADER
        self._state_since = self.limits.now
        self._unparsed_bytes = 0

    def on_headers_complete(self) -> None:
        """Check the URL and the headers, then start the application, or queue the request behind an earlier one.

        Raises UrlTooLong, HeadersTooLarge or MalformedRequest.
        """
        version = self.parser.get_http_version()
        check_size(self.url, self.headers, self._unparsed_bytes + CHUNK_BYTES)
        check_headers(self.headers, version, is_upgrade=self.parser.should_upgrade())
        if len(self.pipeline) >= MAX_PIPELINED:
            fix = "Wait for responses before you send more."
            raise MalformedRequest("Too many requests are waiting on this connection.", fix)
        url = httptools.parse_url(self.url)
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version
        self.scope["path"] = unquote(url.path.decode("ascii"))
        self.scope["raw_path"] = url.path
        self.scope["query_string"] = url.query or b""
        is_answering = self._is_answering()
        self.cycle = exchange = Exchange(
            self.scope, self.transport, self.flow, self.logger, self.access_logger, access_log=False,
            default_headers=self.server_state.default_headers, message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(), on_response=self.on_response_complete,
        )  # fmt: skip
        exchange.on_response = partial(self._finish_exchange, exchange)
        if is_answering:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))
        else:
            self._start_asgi_task(exchange, self.app)
        self.headers = []  # so that trailers do not change the headers of a running request
        self._state = _State.BODY
        self._state_since = self.limits.now

    def on_body(self, body: bytes) -> None:
        """Buffer a chunk of a body; pause reading if too much of it is unconsumed."""
        super().on_body(body)
        self._unparsed_bytes = 0
        if len(self.cycle.body) >= MAX_WAITING_BYTES:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Finish receiving a request; the connection can receive the next one."""
        if self.cycle is not None:
            super().on_message_complete()
        self._state = _State.IDLE
        self._state_since = self.limits.now

    def _finish_exchange(self, exchange: Exchange) -> None:
        """Close the connection after a response, or start its next request, or send a pending error."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if not exchange.keep_alive:
            end = self.linger if exchange.more_body else self.transport.close
            end()
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
        """Discard further input, and send the problem after earlier responses, or raise it in the application that is
        reading the body.
        """
        state, self._state = self._state, _State.CLOSING
        self._error = problem
        if not self._is_answering():
            self._send_error(problem)
        elif state is _State.BODY:
            self.cycle.keep_alive = False
            self.cycle.error = problem
            self.cycle.message_event.set()  # wake up an application that waits for the body

    def _send_error(self, problem: Problem) -> None:
        answer, headers = self.limits.middleware.rejected(self.client, problem)
        body = orjson.dumps(answer.body)
        own = [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        self.transport.write(encode_head(answer.status, [*self.server_state.default_headers, *own, *headers]) + body)
        self.linger()

    def linger(self) -> None:
        """Stop sending, and discard all further input. The connection is closed after LINGER_SECONDS."""
        self._state, self._state_since, self._error = _State.CLOSING, self.limits.now, None
        self.pipeline.clear()
        self.transport.write_eof()
        self.flow.resume_reading()

    def close_if_expired(self) -> bool:
        """Return whether a deadline has passed; if so, close this connection or reject its request."""
        if self._is_stalled():
            self.abort()
            return True
        if self.transport.is_closing():
            return False
        if self.flow.read_paused or (self._is_answering() and self.cycle.waiting_for_100_continue):
            self._state_since = self._received_at = self.limits.now
        now = self.limits.now - SWEEP_SECONDS  # events may be up to one sweep later than recorded
        in_state, idle = now - self._state_since, now - self._received_at
        idle_timeout = self._idle_timeout if self._state is _State.IDLE else LINGER_SECONDS
        if self._state is _State.HEADER and in_state > HEADER_TIMEOUT_SECONDS:
            self._reject(RequestTimeout("Timed out waiting for the request's header."))
        elif self._state is not _State.HEADER and in_state > idle_timeout and not self._is_answering():
            self.transport.close()
        elif self._state is _State.BODY and (in_state > BODY_TIMEOUT_SECONDS or idle > BODY_IDLE_TIMEOUT_SECONDS):
            self._reject(RequestTimeout("Timed out waiting for the request's body."))
        else:
            return False
        return True

    def abort(self) -> None:
        """Reset this connection immediately, and discard unsent output, including the system's send buffer."""
        linger = struct.pack("ii", 1, 0)  # on, for 0 seconds
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()

    def _is_stalled(self) -> bool:
        """Return whether the client has read too little of the response for WRITE_TIMEOUT_SECONDS."""
        unread = self.transport.get_write_buffer_size()
        if unread:  # the write buffer alone shrinks in steps of megabytes, so add the system's send buffer
            unread += unacknowledged_bytes(self.transport.get_extra_info("socket"))
        if unread == 0 or self._unread_bytes == 0 or unread <= self._unread_bytes - MIN_READ_BYTES:
            self._unread_bytes, self._stalled_since = unread, self.limits.now
        self._unread_bytes = max(self._unread_bytes, unread)
        return self.limits.now - self._stalled_since > WRITE_TIMEOUT_SECONDS

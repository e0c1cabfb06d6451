"""A load driver's keep-alive connection, which sends one request at a time and receives the whole answer."""

import asyncio
import contextlib
import random
import resource
import time
from collections.abc import AsyncIterator, Callable
from typing import cast

Answered = Callable[[bytes | None], None]
"""A callback that receives a whole answer with its header, or None if the server closed the connection instead."""

_RANDOM = random.Random(1)


class Exchange(asyncio.Protocol):
    """A connection to a server. `is_open` tells whether it is established, and not closed or lost."""

    def __init__(self) -> None:
        self.is_open = False
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._answered: Answered | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Mark the connection as open."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def send(self, request: bytes, answered: Answered) -> None:
        """Send a request; `answered` is called exactly once."""
        if not self.is_open:
            answered(None)
            return
        self._answered = answered
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Pass the answer to the callback once it is complete."""
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._buffer.find(b"content-length: ")
        length = int(self._buffer[at + 16 : self._buffer.find(b"\r\n", at)])
        if len(self._buffer) < head + 4 + length:
            return
        answer = bytes(self._buffer)
        self._buffer.clear()
        self._finish(answer)

    def connection_lost(self, _: Exception | None) -> None:
        """Mark the connection as closed, and pass None to the waiting callback."""
        self.is_open = False
        self._finish(None)

    def close(self) -> None:
        """Close the connection if it is open."""
        if self.is_open:
            self.is_open = False
            self._transport.close()

    def _finish(self, answer: bytes | None) -> None:
        answered, self._answered = self._answered, None
        if answered:
            answered(answer)


async def connect(port: int) -> Exchange:
    """Connect to a server on this machine. The returned connection is not open if the server did not accept it."""
    exchange = Exchange()
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().create_connection(lambda: exchange, "127.0.0.1", port)
    return exchange


async def ask(exchange: Exchange, request: bytes) -> bytes | None:
    """Return the whole answer to a request; None if the server closed the connection instead."""
    answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
    exchange.send(request, lambda body: None if answer.done() else answer.set_result(body))
    return await answer


async def due_times(rate: float, seconds: float) -> AsyncIterator[tuple[int, float]]:
    """Yield the number and the scheduled time (time.perf_counter) of each request when it is due, for `seconds` at
    `rate` requests per second.
    """
    started = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        yield number, due


def get_request(path: str, key: str) -> bytes:
    """Return a GET request with a new source address."""
    return header("GET", path, key) + b"\r\n"


def post_request(path: str, key: str, body: bytes) -> bytes:
    """Return a POST request with this body and a new source address."""
    return header("POST", path, key) + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def header(method: str, path: str, key: str) -> bytes:
    """Return the request line and headers, with a new source address, without the empty line at the end."""
    return with_source(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode())


def with_source(request: bytes, source: str = "") -> bytes:
    """Add a source address, which is new by default, to a request."""
    line, _, rest = request.partition(b"\r\n")
    return b"%s\r\nX-Forwarded-For: %s\r\n%s" % (line, (source or _source()).encode(), rest)


def _source() -> str:
    number = _RANDOM.getrandbits(24)
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def status_of(answer: bytes | None) -> int:
    """Return the status of an answer; 0 if there was none."""
    return int(answer[9:12]) if answer else 0


def raise_file_limit() -> None:
    """Allow this process to open as many files as the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

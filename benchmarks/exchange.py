"""A keep-alive connection of the load drivers: one request at a time, and the whole answer to it."""

import asyncio
import contextlib
import random
import resource
import time
from collections.abc import AsyncIterator, Callable
from typing import cast

Answered = Callable[[bytes | None], None]
"""Takes the bytes of a whole answer, header included; None if the server closed the connection instead."""

_RANDOM = random.Random(1)


class Exchange(asyncio.Protocol):
    """A connection. `is_open` tells whether it can take a request after the answer to the last."""

    def __init__(self) -> None:
        self.is_open = False
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._answered: Answered | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Requests can be sent from now on."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def send(self, request: bytes, answered: Answered) -> None:
        """Send a request; `answered` is called once."""
        if not self.is_open:
            answered(None)
            return
        self._answered = answered
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Pass the answer on when it is whole."""
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
        """Tell the waiting caller that there is no answer."""
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
    """A new connection to a server on this machine; not open if the server took none."""
    exchange = Exchange()
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().create_connection(lambda: exchange, "127.0.0.1", port)
    return exchange


async def ask(exchange: Exchange, request: bytes) -> bytes | None:
    """The whole answer to a request; None if the server closed the connection instead."""
    answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
    exchange.send(request, lambda body: None if answer.done() else answer.set_result(body))
    return await answer


async def due_times(rate: float, seconds: float) -> AsyncIterator[tuple[int, float]]:
    """The number of each request and when it is due (by time.perf_counter), at that time: `rate` of them a second."""
    started = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        yield number, due


def get_request(path: str, key: str) -> bytes:
    """A GET, from a source address of its own."""
    return header("GET", path, key) + b"\r\n"


def post_request(path: str, key: str, body: bytes) -> bytes:
    """A POST of a body, from a source address of its own."""
    return header("POST", path, key) + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def header(method: str, path: str, key: str) -> bytes:
    """The first lines of a request from a source address of its own, without the empty line that ends them."""
    return with_source(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode())


def with_source(request: bytes, source: str = "") -> bytes:
    """A request with the address that it comes from: by default, an address of its own."""
    line, _, rest = request.partition(b"\r\n")
    return b"%s\r\nX-Forwarded-For: %s\r\n%s" % (line, (source or _source()).encode(), rest)


def _source() -> str:
    number = _RANDOM.getrandbits(24)
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def status_of(answer: bytes | None) -> int:
    """The status of an answer; 0 if there was none."""
    return int(answer[9:12]) if answer else 0


def raise_file_limit() -> None:
    """Allow this process as many open files as the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

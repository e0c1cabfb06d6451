"""How many connections each source may hold, and what the operating system knows and does of one."""

import asyncio
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from service.http.rate_limit import SourceResolver

MAX_PER_SOURCE: Final = 64
MAX_OPEN: Final = 2_048
SMALL_SOURCE_CONNECTIONS: Final = 4
"""Sources with fewer connections may also take the last eighth of all slots: a few sources cannot take them all."""

_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 seconds


class ConnectionSlots:
    """A slot for each open connection. A trusted proxy, which brings many clients, may take as many as there are."""

    def __init__(self, sources: SourceResolver, max_open: int = MAX_OPEN) -> None:
        self._sources = sources
        self._max_open = max_open
        self._open = 0
        self._by_source: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many are in use."""
        return self._open

    def acquire(self, client: tuple[str, int] | None) -> str | None:
        """Take a slot: the source to release it for. None when there is none left for this client."""
        is_proxy = client is not None and self._sources.is_trusted(client[0])
        source = "" if is_proxy else self._sources.of({"client": client, "headers": []}) or "unknown"
        held = self._by_source[source] if source else 0
        capacity = self._max_open - (self._max_open // 8 if held >= SMALL_SOURCE_CONNECTIONS else 0)
        if held >= MAX_PER_SOURCE or self._open >= capacity:
            return None
        self._open += 1
        self._by_source[source] += 1
        return source

    def release(self, source: str) -> None:
        """Give back a slot of a source."""
        self._open -= 1
        self._by_source[source] -= 1
        if not self._by_source[source]:
            del self._by_source[source]


class SocketLike(Protocol):
    """A socket, or what an event loop shows of one."""

    def fileno(self) -> int:
        """Its number."""

    def setsockopt(self, level: int, name: int, value: int | bytes, /) -> None:
        """Set an option."""


def set_reset_on_close(connection: SocketLike) -> None:
    """Let nothing be kept that was written and not read, once a connection is closed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def set_unacknowledged_timeout(listener: SocketLike, seconds: float) -> None:
    """Let connections end of which nothing is read for so long, also when they are closed already."""
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))


def unacknowledged_bytes(connection: SocketLike) -> int:
    """How much was written and not yet received; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415  # not everywhere
    import termios  # noqa: PLC0415

    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


class LingeringTransport(asyncio.Transport):
    """A transport that is not closed at once, but by a way of its own: what it sent last would be lost."""

    def __init__(self, transport: asyncio.Transport, end: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self._end = end

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a piece."""
        self._transport.write(data)

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._transport.is_closing()

    def close(self) -> None:
        """End."""
        self._end()

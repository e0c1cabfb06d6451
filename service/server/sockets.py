"""What the operating system knows and does of a connection, where it can be asked."""

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from typing import Final, Protocol

_AT_ONCE: Final = struct.pack("ii", 1, 0)


class AnySocket(Protocol):
    """A socket, or what an event loop shows of one."""

    def fileno(self) -> int:
        """Its number."""

    def setsockopt(self, level: int, name: int, value: int | bytes, /) -> None:
        """Set an option."""


def reset_when_closed(connection: AnySocket) -> None:
    """Let nothing be kept that was written and not read, once a connection is closed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)


def give_up_after(listener: AnySocket, seconds: float) -> None:
    """Let connections end of which nothing is read for so long, also when they are closed already."""
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))


def unread_bytes(connection: AnySocket) -> int:
    """How much was written and not yet received; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415  # not everywhere
    import termios  # noqa: PLC0415

    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


class Lingering(asyncio.Transport):
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

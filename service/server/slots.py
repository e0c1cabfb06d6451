"""Limits on open connections, per source and in total, and the number of a connection's unacknowledged bytes."""

import fcntl
import socket
import sys
import termios
from collections import Counter
from typing import Final

from service.core.http.rate_limit import SourceResolver

MAX_PER_SOURCE: Final = 64
MAX_OPEN: Final = 2_048
SMALL_SOURCE_CONNECTIONS: Final = 4
"""Only sources with fewer connections than this may use the last eighth of all slots, so that a few sources cannot use
them all."""


class ConnectionSlots:
    """Limits open connections, also per source. Trusted proxies, which carry many clients, have no limit per source."""

    def __init__(self, sources: SourceResolver, max_open: int = MAX_OPEN) -> None:
        self._sources = sources
        self._max_open = max_open
        self._open = 0
        self._by_source: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of slots in use."""
        return self._open

    def acquire(self, client: tuple[str, int] | None) -> str | None:
        """Acquire a slot. Returns the source for release() ("" for a trusted proxy), or None if no slot is free."""
        is_proxy = client is not None and self._sources.is_trusted(client[0])
        source = "" if is_proxy else self._sources.of({"client": client, "headers": []}) or "unknown"
        in_use = self._by_source[source] if source else 0
        capacity = self._max_open - (self._max_open // 8 if in_use >= SMALL_SOURCE_CONNECTIONS else 0)
        if in_use >= MAX_PER_SOURCE or self._open >= capacity:
            return None
        self._open += 1
        self._by_source[source] += 1
        return source

    def release(self, source: str) -> None:
        """Release one slot of `source`, which acquire() returned."""
        self._open -= 1
        self._by_source[source] -= 1
        if not self._by_source[source]:
            del self._by_source[source]


def unacknowledged_bytes(connection: socket.socket) -> int:
    """Return the number of written bytes that the client has not acknowledged; 0 on systems other than Linux."""
    if sys.platform != "linux":
        return 0
    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)

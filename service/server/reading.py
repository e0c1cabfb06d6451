"""Reads connections into one shared buffer, in small steps. Connections with input to be discarded take turns."""

import asyncio
from collections import deque
from typing import Final

READ_BYTES: Final = 65_536
"""Maximum number of bytes read from a connection at once."""
DISCARDING_CONNECTIONS: Final = 8
"""Maximum number of connections with input to discard in one iteration of the event loop; requests on other
connections are answered in between."""


class SharedInput:
    """The buffer that all connections are read into, and the connections waiting for their input to be discarded.
    Belongs to one event loop.
    """

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(READ_BYTES))
        """The buffer for one read at a time; its bytes are copied before the next read."""
        self._waiting: deque[asyncio.Transport] = deque()

    def discard_in_turn(self, transport: asyncio.Transport) -> None:
        """Pause reading from a connection until its turn to have input discarded."""
        transport.pause_reading()
        self._waiting.append(transport)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        for _ in range(min(DISCARDING_CONNECTIONS, len(self._waiting))):
            self._waiting.popleft().resume_reading()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._resume)


class BufferReader(asyncio.BufferedProtocol):
    """Reads into the shared buffer for uvicorn's protocol, which would otherwise allocate 256 KiB per connection."""

    def __init__(self, protocol: asyncio.Protocol, shared: SharedInput) -> None:
        self._protocol = protocol
        self._buffer = shared.buffer

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # as asyncio calls it
        """Return the shared buffer for the next read, whatever the size hint."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the data that was read to the protocol, which must copy what it keeps."""
        self._protocol.data_received(self._buffer[:nbytes])  # type: ignore[arg-type]  # equivalent to bytes during the call

    def eof_received(self) -> bool | None:
        """Tell the protocol that the client has finished sending."""
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol that the connection is closed."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Tell the protocol to stop writing, since the client reads too slowly."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Tell the protocol that it can write again, since the client has read the buffered data."""
        self._protocol.resume_writing()

"""How much is read from a connection in one step, on real sockets: other clients are answered between two steps."""

import asyncio
import ipaddress
import socket
from collections import Counter
from contextlib import ExitStack, suppress
from itertools import pairwise

import pytest
import uvicorn
import uvloop
from uvicorn.server import ServerState

from service.core.http.rate_limit import SourceResolver
from service.server.connection import ConnectionLimits
from service.server.reading import DISCARDING_CONNECTIONS, READ_BYTES, SharedInput
from service.server.slots import ConnectionSlots

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
CLIENTS = 3 * DISCARDING_CONNECTIONS
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"


@pytest.fixture
def clients():
    """Connect clients to a port and let each send as much as the system accepts; return the number of bytes sent."""
    with ExitStack() as stack:

        def sent(port, data):
            total = 0
            for _ in range(CLIENTS):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                client.setblocking(False)
                with suppress(BlockingIOError):
                    for begin in range(0, len(data), READ_BYTES):
                        total += client.send(data[begin : begin + READ_BYTES])
            return total

        yield sent


class Rounds:
    """Records how often each connection is read in each round of the event loop."""

    def __init__(self):
        self.reads, self.total, self.largest = [Counter()], 0, 0

    async def until(self, total):
        """Wait until this many bytes have been read, then close the connections."""
        while self.total < total:
            self.reads.append(Counter())
            await asyncio.sleep(0)
        for connection in set().union(*self.reads):
            connection.transport.abort()
        await asyncio.sleep(0.1)

    def note(self, connection, data):
        self.reads[-1][connection] += 1
        self.total += len(data)
        self.largest = max(self.largest, len(data))


async def refuse(scope, receive, send):
    await send({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


def test_the_rest_of_a_body_is_read_in_one_step_per_round(clients):
    async def served():
        rounds, loop = Rounds(), asyncio.get_running_loop()
        limits = ConnectionLimits(None, ConnectionSlots(SourceResolver([LOOPBACK])))
        config = uvicorn.Config(refuse, http=limits.protocol(), lifespan="off")

        class Noted(limits.protocol()):
            def data_received(self, data):
                rounds.note(self, data)
                super().data_received(data)

        async with await loop.create_server(lambda: Noted(config, ServerState(), {}), "127.0.0.1", 0) as server:
            sent = clients(server.sockets[0].getsockname()[1], HEAD + bytes(1 << 20))
            await rounds.until(sent)
        return rounds

    rounds = uvloop.run(served())
    assert rounds.largest == READ_BYTES
    assert max(max(reads.values(), default=0) for reads in rounds.reads) == 1


def test_only_a_few_connections_are_discarded_per_round(clients):
    class Kept(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport
            made.append(self)

    made, resumed = [], []

    async def served():
        shared, loop = SharedInput(), asyncio.get_running_loop()
        async with await loop.create_server(Kept, "127.0.0.1", 0) as server:
            clients(server.sockets[0].getsockname()[1], b"")
            while len(made) < CLIENTS:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            for one in made:
                shared.discard_in_turn(one.transport)
            while len(resumed) < 2 or resumed[-1] < CLIENTS:
                resumed.append(sum(one.transport.is_reading() for one in made))
                await asyncio.sleep(0)
            for one in made:
                one.transport.abort()
            await asyncio.sleep(0.1)

    uvloop.run(served())
    steps = [after - before for before, after in pairwise(resumed)]
    assert (resumed[0], max(steps)) == (0, DISCARDING_CONNECTIONS)

"""Requests at a steady rate: the wait of each is counted from when it was due, whatever the server does meanwhile."""

import asyncio
import contextlib

import pytest

from benchmarks.figures import percentile_99
from benchmarks.steady import CONNECTIONS, HEALTH, RATE, _Asker

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy"


async def asked(answer, paths, seconds, *, held_back):
    """What is measured of a server that, once warm, answers so many requests together, when the last has come."""
    waiting, warm = [], asyncio.Event()

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError), contextlib.closing(writer):
            while await reader.readuntil(b"\r\n\r\n"):
                if not warm.is_set():
                    writer.write(OK)
                    continue
                waiting.append(writer)
                if len(waiting) == held_back:
                    warm.clear()
                    for held in waiting:
                        held.write(answer)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        asker = _Asker(server.sockets[0].getsockname()[1], "key", paths)
        await asker.warm_up()
        warm.set()
        try:
            return await asker.measure(seconds)
        finally:
            asker.close()


def test_requests_go_on_while_none_is_answered_and_their_wait_is_counted_from_when_they_were_due():
    found = asyncio.run(asked(OK, ["/a"], (CONNECTIONS + 10) / RATE, held_back=CONNECTIONS))
    times = [*found[HEALTH], *found["/a"]]
    assert len(times) == len(found["late"]) == CONNECTIONS + 10
    assert max(times) >= 1000 * (CONNECTIONS - 1) / RATE


def test_what_is_not_answered_by_200_ends_the_measurement():
    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(asked(BUSY, ["/a"], 2 / RATE, held_back=2))
    assert "busy" in str(raised.value.exceptions[0])


@pytest.mark.parametrize(("values", "expected"), [([3.0], 3.0), (range(1, 101), 99), (range(1, 1001), 990)])
def test_99_of_100_values_do_not_exceed_the_percentile(values, expected):
    assert percentile_99(values) == expected

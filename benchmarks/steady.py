"""Sends requests at a steady rate from a separate process, each at its scheduled time, whether or not earlier ones have
been answered.

A response time is measured from the scheduled time of its request, so it includes waiting for a connection or for the
processor. The program requests every path once and prints "ready". Then it reads numbers of seconds from standard
input, one per line; for each, it measures for that long and prints a line of JSON (see Times).
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Final

import uvloop

from benchmarks.exchange import Exchange, ask, connect, due_times, get_request, status_of

RATE: Final = 200
"""Requests per second."""
CONNECTIONS: Final = 40
"""Number of connections, all opened at the start and kept open, as by a proxy; a request waits for a free one."""
MOST_SECONDS: Final = 30
"""Seconds for which a request is repeated if its connection is lost; then the measurement fails."""
HEALTH: Final = "/healthz"
"""The path that is requested once a second instead of the next path. Its answer needs a query, and is not cached."""

Times = dict[str, list[float]]
"""Response times in milliseconds by path, and under "late" the milliseconds by which requests were sent late."""


class _Asker:
    def __init__(self, port: int, key: str, paths: Sequence[str]) -> None:
        self._port, self._key, self._paths = port, key, paths
        self._free: asyncio.Queue[Exchange] = asyncio.Queue()  # used in rotation, so that none is idle for long
        self._opened: list[Exchange] = []

    async def warm_up(self) -> None:
        """Open the connections, and request each path once. Raises RuntimeError unless every answer is 200."""
        for _ in range(CONNECTIONS):
            self._free.put_nowait(await self._connect())
        for path in dict.fromkeys(self._paths):
            await self._ask(path, time.perf_counter(), [])

    async def measure(self, seconds: float) -> Times:
        """Send requests for `seconds`, and return their response times and delays."""
        times: Times = {path: [] for path in (*self._paths, HEALTH, "late")}
        async with asyncio.TaskGroup() as group:
            async for number, due in due_times(RATE, seconds):
                times["late"].append(1000 * (time.perf_counter() - due))
                path = self._paths[number % len(self._paths)] if number % RATE else HEALTH
                group.create_task(self._ask(path, due, times[path]))
        return times

    def close(self) -> None:
        """Close all connections."""
        for exchange in self._opened:
            exchange.close()

    async def _connect(self) -> Exchange:
        exchange = await connect(self._port)
        self._opened.append(exchange)
        return exchange

    async def _ask(self, path: str, due: float, milliseconds: list[float]) -> None:
        exchange, answer = await self._free.get(), None
        while answer is None and time.perf_counter() < due + MOST_SECONDS:
            if not exchange.is_open:  # it was closed while idle, or the server accepted no more connections
                exchange = await self._connect()
            answer = await ask(exchange, get_request(path, self._key))
            if answer is None:
                await asyncio.sleep(0.01)
        milliseconds.append(1000 * (time.perf_counter() - due))
        self._free.put_nowait(exchange)
        if status_of(answer) != 200:
            raise RuntimeError(f"{path} was answered by {(answer or b'nothing')[:300]!r}")


async def _main(port: int, key: str, paths: Sequence[str]) -> None:
    asker = _Asker(port, key, paths)
    await asker.warm_up()
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await asker.measure(float(line))), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))

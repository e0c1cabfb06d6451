"""Crowds of clients in a process of their own: `slow` ones that never finish a request, or `cold` ones.

Cold clients ask for dashboards that no cache holds; who is told that the server is busy asks again after a second. The
program prints "ready" when every client has connected once, and ends by SIGTERM, or after MOST_SECONDS, with a line of
JSON that counts what happened.
"""

import asyncio
import contextlib
import json
import signal
import sys
from collections import Counter
from datetime import timedelta
from itertools import count

import uvloop

from benchmarks.exchange import Exchange, ask, connect, get_request, raise_file_limit, status_of
from benchmarks.worlds import WHOLE

MOST_SECONDS = 150
PER_SOURCE = 4
"""Connections from one address; who has more may not use the last slots of the server."""
AGAIN_SECONDS = 1.0
_HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "


class _Crowd:
    def __init__(self, port: int, clients: int) -> None:
        self._port, self._clients = port, clients
        self.counts: Counter[str] = Counter()
        self._connected = 0
        self.is_ready = asyncio.Event()

    def joined(self) -> None:
        """Count a client that has connected for the first time."""
        self._connected += 1
        if self._connected == self._clients:
            self.is_ready.set()

    async def slow(self, number: int) -> None:
        """Send half a request, wait until the server gives up, and begin again."""
        source = f"127.{1 + (number // PER_SOURCE >> 8)}.{number // PER_SOURCE & 255}.1"
        for attempt in count():
            answer = b""
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(source, 0))
                writer.write(_HALF)
                if not attempt:
                    self.joined()
                with contextlib.closing(writer):
                    answer = await reader.read(12)
            self.counts["given up" if answer else "turned away"] += 1
            if not answer:
                await asyncio.sleep(AGAIN_SECONDS)

    async def cold(self, number: int, key: str) -> None:
        """Ask for one dashboard after the other, each of another period."""
        exchange = Exchange()
        for question in count():
            if not exchange.is_open:
                exchange = await connect(self._port)
            start = WHOLE.start_date - timedelta(1 + number + self._clients * question)
            path = f"/analytics/dashboard?start_date={start}&end_date={WHOLE.end_date}"
            if not question:
                self.joined()
            status = status_of(await ask(exchange, get_request(path, key)))
            self.counts[f"status {status}" if status else "turned away"] += 1
            if status != 200:
                await asyncio.sleep(AGAIN_SECONDS)


async def _main(kind: str, port: int, clients: int, key: str) -> None:
    raise_file_limit()
    crowd, is_over = _Crowd(port, clients), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    running = [
        asyncio.create_task(crowd.slow(number) if kind == "slow" else crowd.cold(number, key))
        for number in range(clients)
    ]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MOST_SECONDS):
            await crowd.is_ready.wait()
            print("ready", flush=True)
            await is_over.wait()
    print(json.dumps(crowd.counts), flush=True)
    for task in running:
        task.cancel()


if __name__ == "__main__":
    kind, port, clients, *key = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(kind, int(port), int(clients), *(key or [""])))

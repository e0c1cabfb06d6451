"""Posts batches of live visits from a separate process, at a steady rate and each at its scheduled time.

Bodies and keys are read from two files, separated by NUL, and are used in rotation. The program prints "ready", posts
for the given number of seconds or until SIGTERM, and prints one line of JSON: `seconds`, `milliseconds`, `refused`.
"""

import asyncio
import contextlib
import json
import signal
import sys
import time
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.exchange import Exchange, ask, connect, due_times, post_request

CONNECTIONS: Final = 16
"""Maximum number of connections; a batch waits until one is free."""


class _Poster:
    def __init__(self, port: int, bodies: list[bytes], keys: list[str]) -> None:
        self._port, self._bodies, self._keys = port, bodies, keys
        self._free: asyncio.LifoQueue[Exchange] = asyncio.LifoQueue()
        self.milliseconds: list[float] = []
        self.refused: list[str] = []

    async def post(self, number: int, due: float) -> None:
        """Post a batch, and record the time until it was acknowledged, or the response that refused it."""
        exchange = await self._free.get()
        if not exchange.is_open:
            exchange = await connect(self._port)
        body, key = self._bodies[number % len(self._bodies)], self._keys[number % len(self._keys)]
        answer = await ask(exchange, post_request("/visits", key, body))
        self._free.put_nowait(exchange)
        if answer and answer[9:12] == b"202" and b'"refused":0' in answer:
            self.milliseconds.append(1000 * (time.perf_counter() - due))
        else:
            self.refused.append((answer or b"nothing")[-200:].decode(errors="replace"))

    async def run(self, rate: float, seconds: float) -> None:
        """Post `rate` batches per second for `seconds`."""
        for _ in range(CONNECTIONS):
            self._free.put_nowait(Exchange())
        async with asyncio.TaskGroup() as group:
            async for number, due in due_times(rate, seconds):
                group.create_task(self.post(number, due))


async def _main(port: int, bodies: list[bytes], keys: list[str], rate: float, seconds: float) -> None:
    poster = _Poster(port, bodies, keys)
    print("ready", flush=True)
    started = time.perf_counter()
    running = asyncio.create_task(poster.run(rate, seconds))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running
    posted = {"seconds": time.perf_counter() - started, "milliseconds": poster.milliseconds, "refused": poster.refused}
    print(json.dumps(posted), flush=True)


if __name__ == "__main__":
    port, bodies, keys, rate, seconds = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(
            _main(
                int(port),
                Path(bodies).read_bytes().split(b"\0"),
                Path(keys).read_text("ascii").split("\0"),
                float(rate),
                float(seconds),
            )
        )

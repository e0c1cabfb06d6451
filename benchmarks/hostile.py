"""Sends requests from a few sources, as many as the rate limit allows, from a separate process.

The file contains requests without their source address, separated by NUL. Each source has CONNECTIONS connections, or
the given number. A connection sends the next request after each answer, and waits for a second, or the given time,
after a refusal. If a patience in seconds is given, it hangs up on requests that take longer. The program prints "ready"
when it begins, and after SIGTERM one line of JSON: the number of requests by result.
"""

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.exchange import Exchange, ask, connect, status_of, with_source

CONNECTIONS: Final = 20
PAUSE_SECONDS: Final = 1.0


async def _ask_on(
    port: int, source: str, requests: Iterator[bytes], counts: Counter[str], patience: float | None, pause: float
) -> None:
    exchange = Exchange()
    for request in requests:
        if not exchange.is_open:
            exchange = await connect(port)
        try:
            async with asyncio.timeout(patience):
                answer = await ask(exchange, with_source(request, source))
        except TimeoutError:
            exchange.close()
            counts["left"] += 1
            continue
        status = status_of(answer)
        counts[f"status {status}" if status else "turned away"] += 1
        if status in {0, 429, 503}:
            await asyncio.sleep(pause)


async def _main(
    port: int, first: int, sources: int, file: str, connections: int, patience: float | None, pause: float
) -> None:
    requests = itertools.cycle(Path(file).read_bytes().split(b"\0"))
    counts: Counter[str] = Counter()
    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    print("ready", flush=True)
    async with asyncio.TaskGroup() as group:
        asking = [
            group.create_task(_ask_on(port, f"198.18.{number >> 8}.{number & 255}", requests, counts, patience, pause))
            for number in range(first, first + sources)
            for _ in range(connections)
        ]
        await is_over.wait()
        for task in asking:
            task.cancel()
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    port, first, sources, file = sys.argv[1:5]
    connections = int(sys.argv[5]) if len(sys.argv) > 5 else CONNECTIONS
    patience = float(sys.argv[6]) if len(sys.argv) > 6 else 0
    pause = float(sys.argv[7]) if len(sys.argv) > 7 else PAUSE_SECONDS
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(int(port), int(first), int(sources), file, connections, patience or None, pause))

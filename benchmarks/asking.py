"""Sends requests of several kinds from a separate process, each kind at a steady rate, and measures response times.

A response time is measured from the scheduled time of its request. Each kind is given as `name=rate=file`; the file
contains requests separated by NUL, which are sent once, in order. Requests of a kind with rate 0 are sent one after
another. The program prints "ready". Then it reads numbers of seconds from standard input, one per line; for each, it
measures for that long and prints a line of JSON with the `milliseconds` and `failures` of each kind.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.exchange import Exchange, ask, connect, due_times, status_of, with_source

LEAST_SAMPLES: Final = 300
"""A kind with rate 0 continues after the others until it has this many answers, up to three times their duration."""
MOST_SECONDS: Final = 30
"""Seconds after which a request counts as unanswered."""


@dataclass
class Answers:
    """The milliseconds until each answer or timeout for one kind, and the failures: every result but a status 2xx."""

    milliseconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass
class _Kind:
    name: str
    rate: float
    requests: Iterator[bytes]
    answers: Answers = field(default_factory=Answers)

    @classmethod
    def parse(cls, text: str) -> "_Kind":
        name, rate, file = text.split("=")
        return cls(name, float(rate), iter(Path(file).read_bytes().split(b"\0")))


class _Asker:
    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[Exchange] = []

    async def ask_all(self, kind: _Kind, seconds: float) -> None:
        """Send the requests of one kind for `seconds`, and wait for the answers.

        With rate 0, continue until there are LEAST_SAMPLES answers, for up to three times `seconds`.
        """
        kind.answers = Answers()
        started = time.perf_counter()
        while not kind.rate and (due := time.perf_counter()) < started + 3 * seconds:
            if due > started + seconds and len(kind.answers.milliseconds) >= LEAST_SAMPLES:
                break
            await self._ask(next(kind.requests), due, kind.answers)
        async with asyncio.TaskGroup() as group:
            async for _, due in due_times(kind.rate, seconds):
                group.create_task(self._ask(next(kind.requests), due, kind.answers))

    async def _ask(self, request: bytes, due: float, answers: Answers) -> None:
        exchange = self._free.pop() if self._free else Exchange()
        if not exchange.is_open:
            exchange = await connect(self._port)
        try:
            async with asyncio.timeout(MOST_SECONDS):
                answer = await ask(exchange, with_source(request))
        except TimeoutError:
            exchange.close()
            answers.failures.append("unanswered")
            answers.milliseconds.append(1000 * (time.perf_counter() - due))
            return
        answers.milliseconds.append(1000 * (time.perf_counter() - due))
        if not 200 <= status_of(answer) < 300:
            answers.failures.append(f"status {status_of(answer)}")
        self._free.append(exchange)


async def _main(port: int, kinds: list[_Kind]) -> None:
    asker = _Asker(port)
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        await asyncio.gather(*(asker.ask_all(kind, float(line)) for kind in kinds))
        print(json.dumps({kind.name: asdict(kind.answers) for kind in kinds}), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(int(sys.argv[1]), [_Kind.parse(text) for text in sys.argv[2:]]))

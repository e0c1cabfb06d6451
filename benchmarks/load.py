"""A load driver: keep-alive connections that send the next request after each answer, from a separate process.

Every request has a random source address, in X-Forwarded-For. Without a file, the requests are GETs, and every answer
must be 200. With a file, its bodies, separated by NUL, are posted in rotation, and every answer must be 202 without
refused visits. The program prints JSON: `requests_per_second` and `p99_ms`.
"""

import asyncio
import json
import random
import sys
import time
from pathlib import Path

import uvloop

from benchmarks.exchange import Exchange, connect


class _Client:
    def __init__(self, run: "_Run", exchange: Exchange) -> None:
        self._run = run
        self._exchange = exchange
        self._asked_at = 0.0

    def ask(self) -> None:
        """Send the next request, or close the connection if there is none."""
        if self._run.more():
            self._asked_at = time.perf_counter()
            self._exchange.send(self._run.request(), self._answered)
        else:
            self._exchange.close()

    def _answered(self, answer: bytes | None) -> None:
        if answer is None:
            self._run.fail("the server closed a connection instead of answering.")
        else:
            self._run.answered(answer, time.perf_counter() - self._asked_at)
            self.ask()


class _Run:
    def __init__(self, path: str, token: str, requests: int, bodies: list[bytes]) -> None:
        self._left = requests
        method = "POST" if bodies else "GET"
        self._head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nX-Forwarded-For: 10."
        )
        self._bodies = [b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies] or [b"\r\n"]
        self._status = b"202" if bodies else b"200"
        self._random = random.Random()  # new sources in each run, since the rate limit is per source
        self.seconds: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.expected = requests

    def more(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def request(self) -> bytes:
        number = self._random.getrandbits(24)
        source = f"{self._head}{number >> 16}.{number >> 8 & 255}.{number & 255}\r\n".encode()
        return source + self._bodies[self._left % len(self._bodies)]

    def answered(self, answer: bytes, seconds: float) -> None:
        self.seconds.append(seconds)
        status = answer[9:12]
        if status != self._status or (self._status == b"202" and b'"refused":0' not in answer):
            self.fail(f"answer {len(self.seconds)} is not {self._status.decode()}, or refuses rows: {answer[-200:]!r}")
        elif len(self.seconds) == self.expected and not self.done.done():
            self.done.set_result(None)

    def fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(why))


async def _main(port: int, path: str, token: str, requests: int, connections: int, bodies: list[bytes]) -> None:
    run = _Run(path, token, requests, bodies)
    started = time.perf_counter()
    for _ in range(connections):
        _Client(run, await connect(port)).ask()
    await run.done
    elapsed = time.perf_counter() - started
    run.seconds.sort()
    figures = {"requests_per_second": requests / elapsed, "p99_ms": 1000 * run.seconds[int(0.99 * requests)]}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    port, path, token, requests, connections, *file = sys.argv[1:]
    bodies = Path(file[0]).read_bytes().split(b"\0") if file else []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(int(port), path, token, int(requests), int(connections), bodies))

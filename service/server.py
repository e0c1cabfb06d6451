"""Serves an application on a socket by uvicorn until it is told to stop. Even its refusals are JSON."""

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from data import BadInput
from service.errors import Problem
from service.limits import Limiter

GRACE_SECONDS: Final = 10
COLLECT_AFTER: Final = (50_000, 20, 100)
"""Objects until the search for cycles: rows of visits come by the thousand and hold none."""


class Malformed(Problem):
    """Bytes that are no HTTP request."""

    status = 400

    def __init__(self) -> None:
        super().__init__("This is no HTTP request.", "Send a well-formed HTTP/1.1 request.")


class JsonProtocol(HttpToolsProtocol):
    """uvicorn's protocol, except that a malformed request counts for its source and is answered in JSON."""

    limiter: Limiter

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # the answer has words of its own
        """Refuse what is no HTTP request."""
        verdict = self.limiter.verdict_of({"client": self.client, "headers": []})
        problem = Malformed() if verdict.accepted else self.limiter.refusal(verdict)
        body = orjson.dumps(problem.body)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *self.limiter.headers(verdict),
        ]
        status = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n".encode()
        lines = b"".join(b"%s: %s\r\n" % pair for pair in headers)
        self.transport.write(status + lines + b"\r\n" + body)
        self.transport.close()


class _Server(uvicorn.Server):
    """A server that ends by itself when told to, instead of dying of the signal afterwards."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell when the socket is answered."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop gracefully at the first signal, at once at the second."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address. Raises BadInput when that cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        place = f"{host}:{port}"
        raise BadInput(f"cannot serve on {place} ({error.strerror}); choose another --host or --port.") from error


def serve_on(app: Limiter, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until told to stop; `ready` is called when the first request can be answered."""
    protocol = type("Protocol", (JsonProtocol,), {"limiter": app})
    config = uvicorn.Config(
        app,
        http=protocol,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    gc.set_threshold(*COLLECT_AFTER)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_Server(config, ready).serve([listener]))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  # there is none for Windows

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory

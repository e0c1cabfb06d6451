"""Serves applications on sockets by uvicorn until it is told to stop."""

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, Literal, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from data import BadInput
from service.http.middleware import RequestMiddleware
from service.metrics import ObservedMetric
from service.server.connection import WRITE_TIMEOUT_SECONDS, ConnectionLimits, LimitedHttpProtocol
from service.server.slots import MAX_OPEN, ConnectionSlots, set_unacknowledged_timeout

SHUTDOWN_SECONDS: Final = 10
"""From the signal to the end of the process, when clients are as slow as they can."""
DRAIN_SECONDS: Final = 8
"""Of these for requests under way; then their connections are cut."""
ACCEPT_SECONDS: Final = 0.1
"""In which whoever has just connected may still ask, before connections that wait are closed."""
SIGNAL_DEBOUNCE_SECONDS: Final = 0.5
"""In which a signal that comes twice is one: a supervisor and a launcher may both send it."""
RESERVED_FILES: Final = 512
"""Files that may be open beside connections."""
GC_THRESHOLDS: Final = (50_000, 20, 100)
"""Objects until the search for cycles: rows of visits come by the thousand and hold none."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server that tells when it is ready, and that somebody else ends."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell when the socket is answered."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


class _MainServer(_Server):
    """A server that ends by itself when told to, however slow its clients, instead of dying of the signal."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], limits: ConnectionLimits) -> None:
        super().__init__(config, on_ready)
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and watch over the connections from now on."""
        self._sweep = asyncio.create_task(self._limits.sweep(self.server_state.connections))
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, for so long as that is bearable."""
        abort = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._abort_connections)
        for server in self.servers:
            server.close()
        await asyncio.sleep(ACCEPT_SECONDS)
        await super().shutdown(sockets)
        abort.cancel()
        self._sweep.cancel()

    def _abort_connections(self) -> None:
        for connection in [*self.server_state.connections]:
            cast("LimitedHttpProtocol", connection).abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop gracefully at the first signal, at once at the second."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        if not self.should_exit:
            self.should_exit = True
            asyncio.get_running_loop().call_later(SIGNAL_DEBOUNCE_SECONDS, _restore_default_signals)


def _restore_default_signals() -> None:
    """What was acknowledged is on disk already: nothing needs an orderly end."""
    for number in _SIGNALS:
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address. Raises BadInput when that cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        place = f"{host}:{port}"
        raise BadInput(f"cannot serve on {place} ({error.strerror}); choose another --host or --port.") from error
    set_unacknowledged_timeout(listener, WRITE_TIMEOUT_SECONDS)
    return listener


def serve_on(
    middleware: RequestMiddleware,
    listener: socket.socket,
    on_ready: Callable[[], None],
    monitor: tuple[ASGIApp, socket.socket] | None = None,
) -> None:
    """Serve until told to stop; `ready` is called when the first request can be answered.

    `monitor` is an application that answers on a socket of its own for a little longer, within no limits.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(middleware, listener, on_ready, monitor))


async def _serve(
    middleware: RequestMiddleware,
    listener: socket.socket,
    on_ready: Callable[[], None],
    monitor: tuple[ASGIApp, socket.socket] | None,
) -> None:
    slots = ConnectionSlots(middleware.limiter.sources, _connection_capacity())
    middleware.metrics.add(ObservedMetric("traffic_connections", "Open connections.", lambda: len(slots)))
    limits = ConnectionLimits(middleware, slots)
    config = _config(middleware, limits.protocol(), "on", SHUTDOWN_SECONDS)
    async with _serve_monitoring(monitor):
        await _MainServer(config, on_ready, limits).serve([listener])


@contextlib.asynccontextmanager
async def _serve_monitoring(monitor: tuple[ASGIApp, socket.socket] | None) -> AsyncIterator[None]:
    """Answer the monitor's socket as long as a with block lasts."""
    if monitor is None:
        yield
        return
    app, listener = monitor
    started = asyncio.Event()
    server = _Server(_config(app, HttpToolsProtocol, "off", 1), started.set)
    serving = asyncio.create_task(server.serve([listener]))
    await started.wait()
    try:
        yield
    finally:
        server.should_exit = True
        await serving


def _config(
    app: ASGIApp, protocol: type[HttpToolsProtocol], lifespan: Literal["on", "off"], grace_seconds: int
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,
        loop="asyncio",
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan=lifespan,
        timeout_graceful_shutdown=grace_seconds,
    )


def _connection_capacity() -> int:
    """Let this process open as many files as it may need; how many connections it has room for."""
    if sys.platform == "win32":
        return MAX_OPEN
    import resource  # noqa: PLC0415  # there is none for Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MAX_OPEN
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - RESERVED_FILES, soft // 2)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  # there is none for Windows

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory

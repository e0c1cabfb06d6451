"""Runs the server: uvicorn with connection limits, a monitor port and a bounded shutdown."""

import asyncio
import contextlib
import ctypes
import gc
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, Literal, cast

import pyarrow as pa
import uvicorn
import uvloop
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from data import BadInput
from service.core.http.middleware import RequestMiddleware
from service.core.metrics import ObservedMetric
from service.server.connection import WRITE_TIMEOUT_SECONDS, ConnectionLimits, LimitedHttpProtocol
from service.server.slots import MAX_OPEN, ConnectionSlots

SHUTDOWN_SECONDS: Final = 10
"""Maximum time from the signal to the end of the process."""
DRAIN_SECONDS: Final = 8
"""Time for running requests to finish, within SHUTDOWN_SECONDS; then their connections are reset."""
ACCEPT_SECONDS: Final = 0.1
"""Time for clients that have just connected to send a request, before idle connections are closed."""
SIGNAL_DEBOUNCE_SECONDS: Final = 0.5
"""Two signals within this time count as one: a supervisor and a launcher may both send it."""
RESERVED_FILES: Final = 512
"""Open files allowed in addition to connections."""
GC_THRESHOLDS: Final = (2_000, 10, 100)
"""Arguments of gc.set_threshold. A collection blocks all requests: with 50,000 objects left by pages, it took 40 ms."""
LARGE_BLOCK: Final = 131_072
"""Minimum size, in bytes, of blocks allocated by mmap, which are returned to the system as soon as they are freed."""
M_MMAP_THRESHOLD: Final = -3
"""A parameter of mallopt(3), from malloc.h."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A uvicorn server that calls `on_ready` once it has started, and installs no signal handlers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, then call `on_ready`."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Yield without installing signal handlers."""
        yield


class _MainServer(_Server):
    """The API server: enforces connection limits, and shuts down in bounded time after a signal."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], limits: ConnectionLimits) -> None:
        super().__init__(config, on_ready)
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the sweep that closes overdue connections, then start the server."""
        self._sweep = asyncio.create_task(self._limits.sweep(self.server_state.connections))
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests finish, for at most DRAIN_SECONDS; then reset their connections."""

        def abort_connections() -> None:
            for connection in [*self.server_state.connections]:
                cast("LimitedHttpProtocol", connection).abort()

        abort = asyncio.get_running_loop().call_later(DRAIN_SECONDS, abort_connections)
        for server in self.servers:
            server.close()
        await asyncio.sleep(ACCEPT_SECONDS)
        await super().shutdown(sockets)
        abort.cancel()
        self._sweep.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop gracefully at the first signal, and immediately at the second."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if not self.should_exit:
                self.should_exit = True
                loop.call_later(SIGNAL_DEBOUNCE_SECONDS, restore_default_signals)

        def restore_default_signals() -> None:  # the next signal kills: visits are durable
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)

        for number in _SIGNALS:
            loop.add_signal_handler(number, stop)
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, also for IPv4 if the host is `::`. Raises BadInput if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    is_dual = host == "::" and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048, dualstack_ipv6=is_dual)
    except OSError as error:
        raise BadInput(f"cannot serve on {host}:{port} ({error.strerror}); choose another --host or --port.") from error
    if sys.platform == "linux":  # drop connections if the client acknowledges no data for this long, even after close()
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * WRITE_TIMEOUT_SECONDS))
    return listener


def serve_on(
    middleware: RequestMiddleware,
    listener: socket.socket,
    on_ready: Callable[[], None],
    monitor: tuple[ASGIApp, socket.socket] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. Calls `on_ready` when requests can be answered.

    `monitor` is a second application and its socket, served without limits until the main application has stopped.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    # Return freed memory to the system. Arrow's own pool would keep the memory that a flush frees. By default, freeing
    # a large block makes glibc put later blocks of up to that size in its heaps, which under load were two thirds free.
    # Fewer heaps would keep less memory, but threads that share a heap take a seventh longer.
    pa.set_memory_pool(pa.system_memory_pool())
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # of glibc
        library.mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)
    slots = ConnectionSlots(middleware.limiter.sources, _connection_capacity())
    middleware.metrics.add(ObservedMetric("traffic_connections", "Open connections.", lambda: len(slots)))
    limits = ConnectionLimits(middleware, slots)

    def ready() -> None:
        gc.collect()
        gc.freeze()  # objects created at startup stay, so later garbage collections skip them
        on_ready()

    async def serve() -> None:
        config = _config(middleware, limits.protocol(), "on", SHUTDOWN_SECONDS)
        async with _serve_monitoring(monitor):
            await _MainServer(config, ready, limits).serve([listener])

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())
    finally:
        gc.unfreeze()  # otherwise DuckDB's module is not freed when the process ends, and prints leaked objects


@contextlib.asynccontextmanager
async def _serve_monitoring(monitor: tuple[ASGIApp, socket.socket] | None) -> AsyncIterator[None]:
    """Serve the monitor application while in this context."""
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
        app, http=protocol, loop="asyncio", ws="none", log_level="warning", access_log=False, proxy_headers=False,
        server_header=False, lifespan=lifespan, timeout_graceful_shutdown=grace_seconds,
    )  # fmt: skip


def _connection_capacity() -> int:
    """Raise the limit on open files as needed. Returns the number of connections that the limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MAX_OPEN
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - RESERVED_FILES, soft // 2)

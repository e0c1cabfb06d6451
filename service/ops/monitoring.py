"""Health checks in the API and on the monitor port. The port also has metrics; only this machine can reach it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.core.http.operations import Call, Json, Operation, Operations
from service.core.http.responses import JsonResponse
from service.core.metrics import Metrics

OPERATIONS = Operations["HealthCheck"]()
HEALTH_CACHE_SECONDS: Final = 1.0
"""Time for which the result of a health check is cached."""


class HealthCheck:
    """Checks whether a real query works, at most once per HEALTH_CACHE_SECONDS for all callers."""

    def __init__(self, probe: Callable[[], Awaitable[object]], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._clock = clock
        self._failure: Exception | None = None
        self._checked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def failure(self) -> Exception | None:
        """Run the query, unless its result is cached; return its error, or None. Concurrent calls share one query."""
        async with self._lock:
            if self._clock() - self._checked_at >= HEALTH_CACHE_SECONDS:
                self._checked_at = self._clock()
                self._failure = None
                try:
                    await self._probe()
                except Exception as error:  # noqa: BLE001  # any error means that the service is not healthy
                    self._failure = error
            return self._failure


@OPERATIONS.handles(
    Operation("GET /healthz", "health", "Check whether the service can answer queries.", {"200": Json}, is_public=True)
)
async def status(health: HealthCheck, _: Call) -> dict[str, str]:
    """Return the status ok, or raise the error of the health check's query."""
    if failure := await health.failure():
        raise failure
    return {"status": "ok"}


def monitor(health: HealthCheck, metrics: Metrics) -> Starlette:
    """Return the ASGI application with /healthz and /metrics, without authentication or rate limit."""

    async def healthz(_: Request) -> Response:
        is_healthy = await health.failure() is None
        return JsonResponse(b'{"status":"ok"}' if is_healthy else b'{"status":"failing"}', 200 if is_healthy else 503)

    async def metrics_text(_: Request) -> Response:
        return Response(await metrics.text(), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/healthz", healthz), Route("/metrics", metrics_text)])

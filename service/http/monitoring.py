"""The application on the monitor port: health and metrics, reachable from this machine only."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.http.responses import JsonResponse
from service.metrics import Metrics

HEALTH_CACHE_SECONDS: Final = 1.0
"""How long the result of a health check is cached."""


class HealthCheck:
    """Checks whether a real query works, at most once per HEALTH_CACHE_SECONDS."""

    def __init__(self, probe: Callable[[], Awaitable[object]], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._clock = clock
        self._is_healthy = False
        self._checked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def is_healthy(self) -> bool:
        """The result of the check, possibly cached. Concurrent calls share one check."""
        async with self._lock:
            if self._clock() - self._checked_at >= HEALTH_CACHE_SECONDS:
                self._checked_at = self._clock()
                self._is_healthy = await self._probe_succeeds()
            return self._is_healthy

    async def _probe_succeeds(self) -> bool:
        try:
            await self._probe()
        except Exception:  # noqa: BLE001  # any error means that the service is not healthy
            return False
        return True


def monitor(health: HealthCheck, metrics: Metrics) -> Starlette:
    """The ASGI application with /healthz and /metrics, without authentication and rate limit."""

    async def healthz(_: Request) -> Response:
        is_healthy = await health.is_healthy()
        return JsonResponse(b'{"status":"ok"}' if is_healthy else b'{"status":"failing"}', 200 if is_healthy else 503)

    async def metrics_text(_: Request) -> Response:
        return Response(await metrics.text(), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/healthz", healthz), Route("/metrics", metrics_text)])

"""The one assembly of the service: settings and a lake in, an ASGI application out."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import Lake
from data.rules.geoip import CountryDatabase
from data.store.links import Targets
from data.store.pending import waiting
from queries import CATALOG, QueryTimeout, Warehouse, load_values
from service.api_keys import Control
from service.http import endpoints, openapi
from service.http.answers import Answers, Workers
from service.http.authentication import Gate, RequireCaller
from service.http.cache import AnswerCache
from service.http.endpoints import Clock, utc_now
from service.http.errors import Failed, NotAllowed, NotFound, Problem
from service.http.jwks import KeySet
from service.http.live_visits import Receiver
from service.http.middleware import Front
from service.http.monitoring import Health, monitor
from service.http.rate_limit import HEADERS, Limiter
from service.http.responses import render
from service.http.shortcut import Shortcut
from service.logs import Log
from service.maintenance import Upkeep
from service.metrics import Metrics, Reading
from service.settings import Settings

if TYPE_CHECKING:
    from data.ingest.live import Intake


@dataclass(frozen=True)
class _Parts:
    """What the service is made of."""

    lake: Lake
    control: Control
    warehouse: Warehouse
    workers: Workers
    cache: AnswerCache
    gate: Gate
    receiver: Receiver
    upkeep: Upkeep

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Work as long as the server runs, and end everything in its order."""
        self.upkeep.begin()
        yield
        await self.receiver.close()
        await self.upkeep.end()
        self.workers.close()
        for part in (self.warehouse, self.control, self.lake.manifest):
            part.close()


def create_app(settings: Settings, clock: Clock = utc_now, log: Log | None = None) -> Front:
    """The whole service over the lake of `settings`. Raises BadInput or LakeDamaged when it cannot start."""
    parts = _assembled(settings, clock)
    answers, targets = Answers(parts.warehouse, parts.cache, parts.workers), Targets(parts.lake)
    base = settings.base_path
    entries = {f"{base}/analytics/{entry.name}": entry for entry in CATALOG}
    public = {
        f"{base}/healthz": endpoints.health(lambda: parts.workers.run(parts.warehouse.probe)),
        f"{base}/openapi.json": endpoints.document(orjson.dumps(openapi.document(base))),
    }
    routes = [
        *(Route(path, endpoints.analytics(entry, answers, targets, clock)) for path, entry in entries.items()),
        Route(f"{base}/jobs", endpoints.jobs(parts.control)),
        Route(f"{base}/settings/api-keys", endpoints.api_keys(parts.control), methods=["GET", "POST"]),
        Route(f"{base}/settings/api-keys/{{id}}", endpoints.api_key(parts.control), methods=["DELETE"]),
        Route(f"{base}/visits", endpoints.visits(parts.receiver), methods=["POST"]),
        *(Route(path, endpoint) for path, endpoint in public.items()),
    ]
    app = Starlette(
        routes=routes,
        middleware=_middleware(settings, parts.gate, public),
        exception_handlers={
            HTTPException: _http_error,
            Problem: _problem,
            QueryTimeout: _timeout,
            Exception: _failure,
        },
        lifespan=parts.lifespan,
    )
    app.router.redirect_slashes = False
    shortcut = Shortcut(entries, parts.gate, answers, targets, lambda: clock().date())
    limiter = Limiter(settings.trusted_proxies)
    metrics = _metrics(parts, limiter)
    health = Health(lambda: parts.workers.run(parts.warehouse.probe))
    return Front(app, limiter, shortcut, _routes_of(routes), metrics=metrics, monitor=monitor(health, metrics), log=log)


def _assembled(settings: Settings, clock: Clock) -> _Parts:
    lake = Lake(settings.lake, create=True)
    control = Control(lake)
    countries = CountryDatabase(settings.geoip) if settings.geoip else None
    return _Parts(
        lake=lake,
        control=control,
        warehouse=Warehouse(lake, load_values(settings.values), settings.memory),
        workers=Workers(),
        cache=AnswerCache(),
        gate=Gate(settings, control, KeySet(settings.jwks) if settings.jwks else None),
        receiver=Receiver(lambda: _intake(lake, settings, countries, clock)),
        upkeep=Upkeep(lake, clock, settings.retention_days),
    )


def _metrics(parts: _Parts, limiter: Limiter) -> Metrics:
    def pending() -> float:
        return waiting(parts.lake.manifest).visits

    return Metrics(
        [
            Reading("traffic_visits_received", "Visits taken live.", lambda: parts.receiver.accepted, is_total=True),
            Reading("traffic_visits_pending", "Visits that wait for a file.", pending),
            Reading("traffic_answers_held", "Answers in the cache.", lambda: len(parts.cache)),
            Reading("traffic_sources", "Sources that the limiter remembers.", lambda: len(limiter)),
        ]
    )


def _middleware(settings: Settings, gate: Gate, public: Iterable[str]) -> list[Middleware]:
    required = Middleware(RequireCaller, caller=gate.caller, public=frozenset(public))
    if not settings.cors_origins:
        return [required]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["Authorization", "Content-Type"],
        expose_headers=[name.decode() for name in HEADERS],
    )
    return [cors, required]


def _routes_of(routes: list[Route]) -> Callable[[str], str]:
    """The route of a path as it is written here, "" for none: the log knows no other paths."""
    plain = {route.path for route in routes if "{" not in route.path}
    others = [route for route in routes if "{" in route.path]

    def route_of(path: str) -> str:
        if path in plain:
            return path
        return next((route.path for route in others if route.path_regex.match(path)), "")

    return route_of


def _intake(lake: Lake, settings: Settings, countries: CountryDatabase | None, clock: Clock) -> "Intake":
    from data.ingest.live import Intake  # noqa: PLC0415  # its rules take a moment to load

    return Intake(lake, settings.trusted_proxies, countries, settings.short_code_pattern, clock)


async def _http_error(_: Request, error: Exception) -> Response:
    headers = getattr(error, "headers", None) or {}
    return render(NotAllowed(headers) if getattr(error, "status_code", 404) == 405 else NotFound())


async def _problem(_: Request, error: Exception) -> Response:
    return render(error if isinstance(error, Problem) else Failed())


async def _timeout(_: Request, __: Exception) -> Response:
    return render(Failed("The query took too long and was stopped; ask for fewer days or for one link."))


async def _failure(_: Request, __: Exception) -> Response:
    return render(Failed())

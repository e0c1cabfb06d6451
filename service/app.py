"""The one assembly of the service: settings and a lake in, an ASGI application out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import Lake
from data.countries import Countries
from data.links import Targets
from queries import CATALOG, QueryTimeout, Warehouse, load_values
from service import endpoints, openapi
from service.access import Gate, RequireCaller
from service.answers import Answers, Workers
from service.cache import AnswerCache
from service.control import Control
from service.endpoints import Clock, utc_now
from service.errors import Failed, NotAllowed, NotFound, Problem
from service.jwks import KeySet
from service.limits import Limiter
from service.receiving import Receiver
from service.responses import render
from service.settings import Settings
from service.upkeep import Upkeep

if TYPE_CHECKING:
    from data.intake import Intake


def create_app(settings: Settings, clock: Clock = utc_now) -> Limiter:
    """The whole service over the lake of `settings`. Raises BadInput or LakeDamaged when it cannot start."""
    lake = Lake(settings.lake, create=True)
    control = Control(lake)
    warehouse = Warehouse(lake, load_values(settings.values), settings.memory)
    workers = Workers()
    answers = Answers(warehouse, AnswerCache(), workers)
    gate = Gate(settings, control, KeySet(settings.jwks) if settings.jwks else None)
    targets = Targets(lake)
    countries = Countries(settings.geoip) if settings.geoip else None
    receiver = Receiver(lambda: _intake(lake, settings, countries, clock))
    upkeep = Upkeep(lake, clock, settings.retention_days)
    base = settings.base_path
    public = {
        f"{base}/healthz": endpoints.health(lambda: workers.run(warehouse.probe)),
        f"{base}/openapi.json": endpoints.document(orjson.dumps(openapi.document(base))),
    }
    routes = [
        *(
            Route(f"{base}/analytics/{entry.name}", endpoints.analytics(entry, answers, targets, clock))
            for entry in CATALOG
        ),
        Route(f"{base}/jobs", endpoints.jobs(control)),
        Route(f"{base}/visits", endpoints.visits(receiver), methods=["POST"]),
        *(Route(path, endpoint) for path, endpoint in public.items()),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        upkeep.begin()
        yield
        await receiver.close()
        await upkeep.end()
        workers.close()
        for part in (warehouse, control, lake.manifest):
            part.close()

    app = Starlette(
        routes=routes,
        middleware=[Middleware(RequireCaller, caller=gate.caller, public=frozenset(public))],
        exception_handlers={
            HTTPException: _http_error,
            Problem: _problem,
            QueryTimeout: _timeout,
            Exception: _failure,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return Limiter(app, settings.trusted_proxies)


def _intake(lake: Lake, settings: Settings, countries: Countries | None, clock: Clock) -> "Intake":
    from data.intake import Intake  # noqa: PLC0415  # its rules take a moment to load

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

"""Builds the ASGI application of the service from its settings. The only file that puts the parts together."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING

import orjson
from starlette.applications import Starlette
from starlette.routing import Route

from data import Lake
from data.links.index import LinkIndex
from data.publish.publisher import LakePublisher
from data.store.country_file import country_database
from queries import CATALOG, Engine, Warehouse, load_traffic_values, open_cluster
from service.api_keys import ApiKeys
from service.clock import Clock, utc_now
from service.control_database import ControlDatabase
from service.hooks.registry import Hooks
from service.hooks.sender import Sender
from service.http import openapi
from service.http.answers import Answers
from service.http.authentication import AuthenticationMiddleware, Authenticator
from service.http.cache import AnswerCache
from service.http.cors import JsonCorsMiddleware
from service.http.endpoints import Handler, document_handler, report_endpoint, routes_of
from service.http.hook_endpoints import hook_handlers
from service.http.job_endpoints import job_handlers, link_writes
from service.http.jwks import JwksClient
from service.http.key_endpoints import key_handlers
from service.http.lanes import Workers
from service.http.link_endpoints import link_edits, link_handlers
from service.http.live_visits import VisitReceiver
from service.http.middleware import RequestMiddleware
from service.http.monitoring import HealthCheck, monitor
from service.http.oidc import OidcClient
from service.http.operations import PUBLIC_PATHS
from service.http.rate_limit import RateLimiter
from service.http.received_bodies import ReceivedBodies
from service.http.routing import RouteTable
from service.jobs.daily import DailyDetection
from service.jobs.silence import open_silences
from service.jobs.store import Jobs
from service.jobs.tables import mark_sent
from service.logs import Log
from service.mail.weekly import WeeklyMail
from service.maintenance import Maintenance
from service.mcp.endpoint import mcp_handler
from service.mcp.sources import server_sources
from service.mcp.tools import Toolbox
from service.metrics import Metrics, ObservedMetric
from service.pages.middleware import Pages
from service.pages.services import PageServices
from service.settings import Settings, cluster_options

if TYPE_CHECKING:
    from data.ingest.live import LiveIngest


class _Parts:
    """The long-lived objects of the service, which the application closes when it stops."""

    def __init__(self, settings: Settings, clock: Clock, log: Log | None, opened: ExitStack) -> None:
        """`opened` gets whatever has to be closed as soon as it is open; if this fails, the caller closes it."""
        self.opened = opened
        self.lake = lake = Lake(settings.lake, create=True)
        opened.callback(lake.manifest.close)
        self.control = control = ControlDatabase(lake)
        opened.callback(control.close)
        self.api_keys, self.jobs = ApiKeys(control, clock), Jobs(control)
        self.hooks = Hooks(control, settings.hook_networks, settings.public_url, clock)
        self.hooks.store_address(settings.public_url + settings.base_path)
        self.countries = countries = country_database(lake, settings.geoip)
        values, options = load_traffic_values(settings.values), cluster_options(settings)
        engines, self.workers = opened.enter_context(ExitStack()), Workers()
        opened.callback(self.workers.close)  # waits for queries, before the engines are closed
        self.warehouse = self.workers.open_engine(lambda: Warehouse(lake, values, settings.memory))
        engines.callback(self.warehouse.close)
        cluster = open_cluster(lake, self.warehouse, options, values) if options else None
        self.engine: Engine = cluster or self.warehouse
        engines.callback(self.engine.close)
        self.cluster_outcomes: Mapping[str, float] = cluster.outcomes if cluster else {}
        self.cache = AnswerCache()

        def detecting_engine(seconds: float) -> Engine:
            # It reads the files of all organizations once: their footers would fill its memory.
            opened = Warehouse(lake, values, settings.memory, seconds, in_background=True)
            return open_cluster(lake, opened, replace(options, seconds=seconds), values) if options else opened

        memory_of_process = "" if options else settings.memory  # many visits are the cluster's
        self.detection = DailyDetection(lake, self.jobs, clock, detecting_engine, memory_of_process)
        mail = None
        if settings.smtp and settings.mail_to:
            mail = WeeklyMail(
                lake, control, clock, lambda: Warehouse(lake, values, settings.memory),
                server=settings.smtp, sender=settings.mail_from, recipients=settings.mail_to,
            )  # fmt: skip
        publisher = LakePublisher(lake, settings.publish, clock) if settings.publish else None
        self.sender = Sender(control, settings.hook_networks, clock, log, mark_sent)

        def live_ingest() -> "LiveIngest":
            from data.ingest.live import LiveIngest  # noqa: PLC0415  # slow: loads the rules

            return LiveIngest(lake, settings.trusted_proxies, countries, settings.short_code_pattern, clock)

        serves_others = self.workers.serves_others
        self.receiver = VisitReceiver(live_ingest, serves_others)
        jwks = JwksClient(settings.jwks) if settings.jwks else None
        self.authenticator = Authenticator(settings, self.api_keys, jwks)
        self.links, self.redirects = link_edits(lake, serves_others), link_writes(self.jobs, serves_others)
        self.maintenance = Maintenance(
            lake, control, clock, settings.retention_days, self.detection, mail, cluster, publisher
        )

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run maintenance and the sender of hooks while the server runs; then close everything, dependents first.

        Everything is closed, too, if one part fails while it starts or ends.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(self.opened)
            self.maintenance.begin()
            stack.push_async_callback(self.maintenance.end)
            stack.push_async_callback(self.redirects.close)
            stack.push_async_callback(self.links.close)
            stack.push_async_callback(self.receiver.close)
            self.sender.begin()
            stack.push_async_callback(self.sender.end)
            yield


def create_app(
    settings: Settings, clock: Clock = utc_now, log: Log | None = None, opened: ExitStack | None = None
) -> RequestMiddleware:
    """The ASGI application over the lake of `settings`, which is created if missing. Raises BadInput or LakeDamaged.

    The end of its lifespan closes what it opens; so does this function if it fails. A caller that may fail before the
    lifespan begins passes `opened`, and closes it.
    """
    opened = opened or ExitStack()
    try:
        return _application(_Parts(settings, clock, log, opened), settings, clock, log)
    except BaseException:
        opened.close()
        raise


def _application(parts: _Parts, settings: Settings, clock: Clock, log: Log | None) -> RequestMiddleware:
    answers, targets = Answers(parts.engine, parts.cache, parts.workers), LinkIndex(parts.lake)
    base, health = settings.base_path, HealthCheck(lambda: parts.workers.run(parts.warehouse.probe))
    reports = (
        Route(f"{base}/analytics/{entry.name}", report_endpoint(entry, answers, targets, clock)) for entry in CATALOG
    )
    sources_of = partial(
        server_sources, parts.lake, answers=answers, workers=parts.workers, links=targets, jobs=parts.jobs, clock=clock
    )
    handlers: dict[str, Handler] = {  # of each of OPERATIONS, by its name
        **job_handlers(parts.jobs, parts.redirects, parts.warehouse, parts.workers, clock),
        **hook_handlers(parts.hooks),
        **key_handlers(parts.api_keys),
        **link_handlers(parts.lake, parts.links, clock),
        "visits": lambda call: parts.receiver.receive(call.request, call.caller),
        "mcp": mcp_handler(
            lambda caller: Toolbox(sources_of(caller)), parts.workers.texts, version("traffic-analytics")
        ),
        "health": lambda _: health.status(),
        "openapi": document_handler(orjson.dumps(openapi.document(base))),
    }
    table = RouteTable([*reports, *routes_of(base, handlers)], parts.lifespan, base)
    public = frozenset(f"{base}{path}" for path in PUBLIC_PATHS)
    authenticated = AuthenticationMiddleware(table, parts.authenticator.authenticate, public)
    app = JsonCorsMiddleware(authenticated, settings.cors_origins) if settings.cors_origins else authenticated
    limiter = RateLimiter(settings.trusted_proxies)
    bodies = ReceivedBodies(limiter.sources.of)
    metrics = _metrics(parts, limiter, bodies, clock)
    middleware = partial(
        RequestMiddleware, limiter=limiter, bodies=bodies, metrics=metrics, monitor=monitor(health, metrics), log=log
    )
    if not settings.pages:
        return middleware(app, route_of=table.path_of)
    oidc = OidcClient(settings, parts.authenticator) if settings.oidc_client_id else None
    services = PageServices(
        parts.lake, parts.control, answers, targets, parts.api_keys, limiter.sources, settings, clock,
        parts.jobs, parts.redirects, parts.hooks, parts.warehouse, parts.workers, oidc, parts.countries,
    )  # fmt: skip
    pages = Pages(app, services)
    return middleware(
        pages, route_of=lambda path: pages.path_of(path) or table.path_of(path), renders_refusals=pages.is_page
    )


def _metrics(parts: _Parts, limiter: RateLimiter, bodies: ReceivedBodies, clock: Clock) -> Metrics:
    lake, sender = parts.lake, parts.sender

    def copy_age() -> float:
        times = [copy.published_at for copy in lake.manifest.copies.of()]
        return max(((clock() - at).total_seconds() if at else inf for at in times), default=0)

    gauge = partial(ObservedMetric, blocks=True)
    counter = partial(ObservedMetric, is_counter=True)
    by_outcome = partial(counter, label="outcome")
    return Metrics(
        [
            counter("traffic_visits_received", "Live visits accepted.", lambda: parts.receiver.accepted),
            gauge("traffic_visits_pending", "Live visits not yet in a file.",
                  lambda: lake.manifest.pending.backlog().visits),
            gauge("traffic_manifest_outdated", "Whether the manifest is older than the files.",
                  lambda: bool(lake.manifest.problem)),
            ObservedMetric("traffic_answers_held", "Answers in the cache.", lambda: len(parts.cache)),
            by_outcome("traffic_hook_deliveries", "Attempts to send messages.", lambda: sender.outcomes),
            by_outcome("traffic_cluster_answers", "Answers that the cluster was asked for.",
                       lambda: parts.cluster_outcomes),
            gauge("traffic_copy_age_seconds", "Age of the oldest published copy.", copy_age),
            gauge("traffic_copies_due", "Copies that may hold erased visits.",
                  lambda: sum(copy.due_since is not None for copy in lake.manifest.copies.of())),
            gauge("traffic_jobs", "Jobs by status.", parts.jobs.counts, label="status"),
            gauge("traffic_silent_sources", "Sources that are silent.",
                  lambda: sum(open_silences(parts.jobs).values())),
            gauge("traffic_hook_pending", "Messages that wait to be sent.", sender.pending),
            gauge("traffic_hook_dead", "Messages that were given up.", sender.dead),
            gauge("traffic_hooks_disabled", "Hooks that the service disabled.", sender.disabled),
            counter("traffic_detection_failures", "Failed detections.", lambda: parts.detection.failures),
            ObservedMetric("traffic_body_bytes", "Bytes of request bodies in memory.", lambda: bodies.bytes_held),
            ObservedMetric("traffic_sources", "Sources known to the rate limiter.", lambda: len(limiter)),
        ]
    )  # fmt: skip

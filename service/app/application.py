"""Builds the service's ASGI application from its settings. The parts are put together only here."""

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
from data.store.lake_tables import CurrentTables
from queries import CATALOG, Engine, Warehouse, load_traffic_values, open_cluster
from service.access import api as access_api
from service.access.api_keys import ApiKeys
from service.access.authentication import AuthenticationMiddleware, Authenticator
from service.access.jwks import JwksClient
from service.access.oidc import OidcClient
from service.access.page_services import PageServices
from service.app import openapi
from service.app.lazy_pages import Pages
from service.app.operations import OF_DOCUMENT, PUBLIC_PATHS, Document
from service.app.page_parts import PageParts
from service.core.clock import Clock, utc_now
from service.core.control_database import ControlDatabase
from service.core.http.cors import JsonCorsMiddleware
from service.core.http.endpoints import routes_of
from service.core.http.middleware import RequestMiddleware
from service.core.http.pools import Workers
from service.core.http.rate_limit import RateLimiter
from service.core.http.received_bodies import ReceivedBodies
from service.core.http.routing import RouteTable
from service.core.logs import Log
from service.core.metrics import Metrics, ObservedMetric
from service.core.settings import Settings, cluster_options
from service.exclusions import api as exclusion_api
from service.hooks import api as hook_api
from service.hooks.registry import Hooks
from service.hooks.sender import Sender
from service.intake import link_api, live_visits
from service.intake.link_api import LinkService, link_edits
from service.intake.live_visits import VisitReceiver
from service.jobs import api as job_api
from service.jobs.daily import DailyDetection
from service.jobs.service import JobService, link_writes
from service.jobs.silence import open_silences
from service.jobs.store import Jobs
from service.jobs.tables import mark_sent
from service.mail.weekly import WeeklyMail
from service.mcp import api as mcp_api
from service.mcp.api import Assistants
from service.mcp.sources import server_sources
from service.mcp.tools import Toolbox
from service.ops import monitoring
from service.ops.maintenance import Maintenance
from service.ops.monitoring import HealthCheck, monitor
from service.reports.answers import Answers
from service.reports.api import report_endpoint
from service.reports.cache import AnswerCache

if TYPE_CHECKING:
    from data.ingest.live import LiveIngest


class _Parts:
    """The long-lived objects of the service, which the application closes when it stops."""

    def __init__(self, settings: Settings, clock: Clock, log: Log | None, opened: ExitStack) -> None:
        """Push each resource to `opened` as soon as it is open. If a later step fails, the caller closes `opened`."""
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
            # A separate engine, since it reads all files once: their footers would fill the memory of the other engine.
            opened = Warehouse(lake, values, settings.memory, seconds, in_background=True)
            return open_cluster(lake, opened, replace(options, seconds=seconds), values) if options else opened

        memory_of_process = "" if options else settings.memory  # large rollups are counted by the cluster
        self.detection = DailyDetection(lake, self.jobs, clock, detecting_engine, memory_of_process)
        mail = None
        if settings.smtp and settings.mail_to:
            mail = WeeklyMail(
                lake, control, clock, lambda: Warehouse(lake, values, settings.memory),
                server=settings.smtp, sender=settings.mail_from, recipients=settings.mail_to,
            )  # fmt: skip
        publisher = LakePublisher(lake, settings.publish, clock) if settings.publish else None
        self.sender = Sender(control, settings.hook_networks, clock, log, mark_sent)

        self.tables = tables = CurrentTables(lake)

        def live_ingest() -> "LiveIngest":
            from data.ingest.live import LiveIngest  # noqa: PLC0415  # slow: loads the rules

            pattern = settings.short_code_pattern
            return LiveIngest(lake, settings.trusted_proxies, countries, pattern, clock, tables=tables)

        serves_others = self.workers.serves_others
        self.receiver = VisitReceiver(live_ingest, serves_others)
        jwks = JwksClient(settings.jwks) if settings.jwks else None
        self.authenticator = Authenticator(settings, self.api_keys, jwks)
        self.links = LinkService(lake=lake, edits=link_edits(lake, serves_others), clock=clock)
        self.job_service = JobService(
            store=self.jobs, links=link_writes(self.jobs, serves_others), warehouse=self.warehouse,
            workers=self.workers, clock=clock,
        )  # fmt: skip
        self.maintenance = Maintenance(
            lake, control, clock, retention_days=settings.retention_days, detection=self.detection, mail=mail,
            counter=cluster, publisher=publisher,
        )  # fmt: skip

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run maintenance and the hook sender while the server runs; then close everything, dependents first.

        Everything is also closed if a part fails to start or end.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(self.opened)
            self.maintenance.begin()
            stack.push_async_callback(self.maintenance.end)
            stack.push_async_callback(self.job_service.links.close)
            stack.push_async_callback(self.links.edits.close)
            stack.push_async_callback(self.receiver.close)
            self.sender.begin()
            stack.push_async_callback(self.sender.end)
            yield


def create_app(
    settings: Settings, clock: Clock = utc_now, log: Log | None = None, opened: ExitStack | None = None
) -> RequestMiddleware:
    """Return the ASGI application for the lake in `settings`, which is created if missing. Raises BadInput or
    LakeDamaged.

    Its resources are closed when its lifespan ends, or by this function if it fails. A caller that may fail before the
    lifespan begins passes `opened` and closes it.
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
        server_sources,
        parts.lake,
        answers=answers,
        workers=parts.workers,
        links=targets,
        jobs=parts.jobs,
        tables=parts.tables,
        clock=clock,
    )
    assistants = Assistants(
        toolbox_of=lambda caller: Toolbox(sources_of(caller)), texts=parts.workers.texts,
        version=version("traffic-analytics"),
    )  # fmt: skip
    document = Document(orjson.dumps(openapi.document(base)))
    operations = (
        *job_api.OPERATIONS.bound(parts.job_service), *hook_api.OPERATIONS.bound(parts.hooks),
        *live_visits.OPERATIONS.bound(parts.receiver), *mcp_api.OPERATIONS.bound(assistants),
        *link_api.OPERATIONS.bound(parts.links), *exclusion_api.OPERATIONS.bound(parts.lake),
        *access_api.OPERATIONS.bound(parts.api_keys), *monitoring.OPERATIONS.bound(health),
        *OF_DOCUMENT.bound(document),
    )  # fmt: skip
    table = RouteTable([*reports, *routes_of(base, operations)], parts.lifespan, base)
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
        lake=parts.lake, control=parts.control, api_keys=parts.api_keys, sources=limiter.sources, settings=settings,
        clock=clock, workers=parts.workers, oidc=oidc, countries=parts.countries,
    )  # fmt: skip
    pages = Pages(
        app,
        PageParts(
            services=services,
            answers=answers,
            targets=targets,
            jobs=parts.job_service,
            hooks=parts.hooks,
            links=parts.links,
        ),
    )
    return middleware(
        pages, route_of=lambda path: pages.path_of(path) or table.path_of(path), renders_refusals=pages.is_page
    )


def _metrics(parts: _Parts, limiter: RateLimiter, bodies: ReceivedBodies, clock: Clock) -> Metrics:
    lake, sender = parts.lake, parts.sender

    def copy_age() -> float:
        times = [copy.published_at for copy in lake.manifest.copies.find()]
        return max(((clock() - at).total_seconds() if at else inf for at in times), default=0)

    gauge = partial(ObservedMetric, blocks=True)
    counter = partial(ObservedMetric, is_counter=True)
    by_outcome = partial(counter, label="outcome")
    return Metrics(
        [
            counter("traffic_visits_received", "Live visits accepted.", lambda: parts.receiver.accepted),
            gauge("traffic_visits_pending", "Live visits not yet in a file.",
                  lambda: lake.manifest.pending.backlog().visits),
            gauge("traffic_manifest_outdated", "State of the manifest: 1 if it is older than the files, otherwise 0.",
                  lambda: bool(lake.manifest.problem)),
            ObservedMetric("traffic_answers_held", "Answers in the cache.", lambda: len(parts.cache)),
            by_outcome("traffic_hook_deliveries", "Attempts to send messages.", lambda: sender.outcomes),
            by_outcome("traffic_cluster_answers", "Answers requested from the cluster.",
                       lambda: parts.cluster_outcomes),
            gauge("traffic_copy_age_seconds", "Age of the oldest published copy.", copy_age),
            gauge("traffic_copies_due", "Copies that may hold erased visits.",
                  lambda: sum(copy.due_since is not None for copy in lake.manifest.copies.find())),
            gauge("traffic_jobs", "Jobs by status.", parts.jobs.counts, label="status"),
            gauge("traffic_silent_sources", "Silent sources of visits.",
                  lambda: sum(open_silences(parts.jobs).values())),
            gauge("traffic_hook_pending", "Pending messages.", sender.pending),
            gauge("traffic_hook_dead", "Abandoned messages.", sender.dead),
            gauge("traffic_hooks_disabled", "Hooks that the service disabled.", sender.disabled),
            counter("traffic_detection_failures", "Failed detections.", lambda: parts.detection.failures),
            ObservedMetric("traffic_body_bytes", "Bytes of request bodies in memory.", lambda: bodies.bytes_held),
            ObservedMetric("traffic_sources", "Sources known to the rate limiter.", lambda: len(limiter)),
        ]
    )  # fmt: skip

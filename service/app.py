"""Builds the ASGI application of the service from its settings. The only file that puts the parts together."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING

import orjson
from starlette.applications import Starlette
from starlette.routing import Route

from data import Lake
from data.publish.publisher import LakePublisher
from data.rules.geoip import CountryDatabase
from data.store.copies import copies
from data.store.generation import outdated
from data.store.link_index import LinkIndex
from data.store.pending import backlog
from queries import CATALOG, Engine, Warehouse, load_traffic_values, open_cluster
from service.api_keys import ApiKeys
from service.clock import Clock, utc_now
from service.cluster import cluster_options
from service.control_database import ControlDatabase
from service.hooks.delivery import HookClient
from service.hooks.registry import Hooks
from service.hooks.sender import Sender
from service.http import endpoints, job_endpoints, openapi
from service.http.answers import Answers
from service.http.authentication import AuthenticationMiddleware, Authenticator, Caller
from service.http.cache import AnswerCache
from service.http.cors import JsonCorsMiddleware
from service.http.hook_endpoints import hook_routes
from service.http.jwks import JwksClient
from service.http.lanes import Workers
from service.http.link_endpoints import link_route
from service.http.links import LinkEditor
from service.http.live_visits import VisitReceiver
from service.http.middleware import RequestMiddleware
from service.http.monitoring import HealthCheck, monitor
from service.http.oidc import OidcClient
from service.http.rate_limit import RateLimiter
from service.http.routing import RouteTable
from service.jobs.daily import DailyDetection
from service.jobs.silence import open_silences
from service.jobs.store import Jobs
from service.jobs.tables import mark_sent
from service.logs import Log
from service.mail.weekly import WeeklyMail
from service.maintenance import Maintenance
from service.mcp.endpoint import mcp_route
from service.mcp.sources import server_sources
from service.mcp.tools import Toolbox
from service.metrics import Metrics, ObservedMetric
from service.pages.middleware import Pages
from service.pages.services import PageServices
from service.settings import Settings

if TYPE_CHECKING:
    from data.ingest.live import LiveIngest


@dataclass(frozen=True)
class _Components:
    """The long-lived objects of the service, which the application closes when it stops."""

    lake: Lake
    control: ControlDatabase
    api_keys: ApiKeys
    jobs: Jobs
    hooks: Hooks
    sender: Sender
    detection: DailyDetection
    warehouse: Warehouse
    engine: Engine
    """The warehouse, or the cluster over it; closed instead of it."""
    cluster_outcomes: Mapping[str, float]
    """How many answers were asked of the cluster, by outcome; empty without one."""
    workers: Workers
    cache: AnswerCache
    authenticator: Authenticator
    receiver: VisitReceiver
    links: LinkEditor
    maintenance: Maintenance

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run maintenance and the sender of hooks while the server runs; then close everything, dependents first."""
        self.maintenance.begin()
        self.sender.begin()
        yield
        await self.sender.end()
        await self.receiver.close()
        await self.links.close()
        await self.maintenance.end()
        self.workers.close()
        for part in (self.engine, self.control, self.lake.manifest):
            part.close()


def create_app(settings: Settings, clock: Clock = utc_now, log: Log | None = None) -> RequestMiddleware:
    """The ASGI application over the lake of `settings`, which is created if missing. Raises BadInput or LakeDamaged."""
    parts = _build_components(settings, clock, log)
    answers, targets = Answers(parts.engine, parts.cache, parts.workers), LinkIndex(parts.lake)
    base = settings.base_path
    entries = {f"{base}/analytics/{entry.name}": entry for entry in CATALOG}
    health = HealthCheck(lambda: parts.workers.run(parts.warehouse.probe))
    public = {
        f"{base}/healthz": endpoints.health(health),
        f"{base}/openapi.json": endpoints.document(orjson.dumps(openapi.document(base))),
    }

    def toolbox_of(caller: Caller) -> Toolbox:
        return Toolbox(
            server_sources(
                parts.lake, caller, answers=answers, workers=parts.workers, links=targets, jobs=parts.jobs, clock=clock
            )
        )

    routes = [
        *(Route(path, endpoints.analytics(entry, answers, targets, clock)) for path, entry in entries.items()),
        *_job_routes(base, parts, clock),
        *hook_routes(base, parts.hooks),
        Route(f"{base}/settings/api-keys", endpoints.api_keys(parts.api_keys), methods=["GET", "POST"]),
        Route(f"{base}/settings/api-keys/{{id}}", endpoints.api_key(parts.api_keys), methods=["DELETE"]),
        link_route(base, parts.links, clock),
        mcp_route(base, toolbox_of, parts.workers.texts, version("traffic-analytics")),
        Route(f"{base}/visits", endpoints.visits(parts.receiver), methods=["POST"]),
        *(Route(path, endpoint) for path, endpoint in public.items()),
    ]
    table = RouteTable(routes, parts.lifespan, base)
    authenticated = AuthenticationMiddleware(table, parts.authenticator.authenticate, frozenset(public))
    app = JsonCorsMiddleware(authenticated, settings.cors_origins) if settings.cors_origins else authenticated
    limiter = RateLimiter(settings.trusted_proxies)
    metrics = _metrics(parts, limiter, clock)
    middleware = partial(RequestMiddleware, limiter=limiter, metrics=metrics, monitor=monitor(health, metrics), log=log)
    if not settings.pages:
        return middleware(app, route_of=table.path_of)
    oidc = OidcClient(settings, parts.authenticator) if settings.oidc_client_id else None
    services = PageServices(
        parts.lake, parts.control, answers, targets, parts.api_keys, limiter.sources, settings, clock,
        parts.jobs, parts.hooks, parts.warehouse, parts.workers, oidc,
    )  # fmt: skip
    pages = Pages(app, services)
    return middleware(
        pages,
        route_of=lambda path: pages.path_of(path) or table.path_of(path),
        renders_refusals=pages.is_page,
    )


def _job_routes(base: str, parts: _Components, clock: Clock) -> list[Route]:
    jobs, one = parts.jobs, f"{base}/jobs/{{id}}"
    return [
        Route(f"{base}/implementations/active", job_endpoints.active_implementations(jobs)),
        Route(f"{one}/guesses", job_endpoints.job_guesses(jobs, parts.warehouse, parts.workers, clock)),
        Route(f"{base}/jobs", job_endpoints.jobs(jobs, clock), methods=["GET", "POST"]),
        Route(one, job_endpoints.job(jobs)),
        Route(f"{one}/actions", job_endpoints.job_actions(jobs, clock), methods=["POST"]),
        Route(f"{one}/implementations", job_endpoints.job_implementations(jobs, clock), methods=["POST"]),
        Route(f"{one}/implementations/{{number}}", job_endpoints.job_implementation(jobs)),
        Route(
            f"{one}/implementations/{{number}}/status",
            job_endpoints.job_implementation_status(jobs, clock),
            methods=["POST"],
        ),
    ]


def _build_components(settings: Settings, clock: Clock, log: Log | None) -> _Components:
    lake = Lake(settings.lake, create=True)
    control = ControlDatabase(lake)
    api_keys, jobs = ApiKeys(control, clock), Jobs(control)
    hooks = Hooks(control, settings.hook_networks, settings.public_url, clock)
    hooks.store_address(settings.public_url + settings.base_path)
    countries = CountryDatabase(settings.geoip) if settings.geoip else None
    values = load_traffic_values(settings.values)
    workers, options = Workers(), cluster_options(settings)
    warehouse = workers.open_engine(lambda: Warehouse(lake, values, settings.memory))
    cluster = open_cluster(lake, warehouse, options, values) if options else None

    def detecting_engine(seconds: float) -> Engine:
        # It reads the files of all organizations once: their footers would fill its memory.
        opened = Warehouse(lake, values, settings.memory, seconds, caches_footers=False)
        return open_cluster(lake, opened, replace(options, seconds=seconds), values) if options else opened

    detection = DailyDetection(lake, jobs, clock, detecting_engine)
    mail = None
    if settings.smtp and settings.mail_to:
        mail = WeeklyMail(
            lake, control, clock, lambda: Warehouse(lake, values, settings.memory),
            server=settings.smtp, sender=settings.mail_from, recipients=settings.mail_to,
        )  # fmt: skip
    publisher = LakePublisher(lake, settings.publish, clock) if settings.publish else None
    return _Components(
        lake=lake,
        control=control,
        api_keys=api_keys,
        jobs=jobs,
        hooks=hooks,
        detection=detection,
        sender=Sender(control, HookClient(settings.hook_networks), clock, log, mark_sent),
        warehouse=warehouse,
        engine=cluster or warehouse,
        cluster_outcomes=cluster.outcomes if cluster else {},
        workers=workers,
        cache=AnswerCache(),
        authenticator=Authenticator(settings, api_keys, JwksClient(settings.jwks) if settings.jwks else None),
        receiver=VisitReceiver(lambda: _intake(lake, settings, countries, clock)),
        links=LinkEditor(lake),
        maintenance=Maintenance(lake, control, clock, settings.retention_days, detection, mail, cluster, publisher),
    )


def _metrics(parts: _Components, limiter: RateLimiter, clock: Clock) -> Metrics:
    def pending() -> float:
        return backlog(parts.lake.manifest).visits

    def is_outdated() -> float:
        return bool(outdated(parts.lake.manifest, parts.lake.root))

    def outcomes() -> Mapping[str, float]:
        return parts.sender.outcomes

    def cluster_outcomes() -> Mapping[str, float]:
        return parts.cluster_outcomes

    def copy_age() -> float:
        times = [copy.published_at for copy in copies(parts.lake)]
        return max(((clock() - at).total_seconds() if at else inf for at in times), default=0)

    def copies_due() -> float:
        return sum(copy.due_since is not None for copy in copies(parts.lake))

    def silent_sources() -> float:
        return sum(open_silences(parts.jobs).values())

    return Metrics(
        [
            ObservedMetric(
                "traffic_visits_received", "Live visits accepted.", lambda: parts.receiver.accepted, is_counter=True
            ),
            ObservedMetric("traffic_visits_pending", "Live visits not yet in a file.", pending, blocks=True),
            ObservedMetric(
                "traffic_manifest_outdated", "Whether the manifest is an older one.", is_outdated, blocks=True
            ),
            ObservedMetric("traffic_answers_held", "Answers in the cache.", lambda: len(parts.cache)),
            ObservedMetric(
                "traffic_hook_deliveries", "Attempts to send messages.", outcomes, is_counter=True, label="outcome"
            ),
            ObservedMetric(
                "traffic_cluster_answers",
                "Answers asked of the cluster.",
                cluster_outcomes,
                is_counter=True,
                label="outcome",
            ),
            ObservedMetric("traffic_copy_age_seconds", "Since every published copy was whole.", copy_age, blocks=True),
            ObservedMetric("traffic_copies_due", "Copies that may hold erased visits.", copies_due, blocks=True),
            ObservedMetric("traffic_jobs", "Jobs by status.", parts.jobs.counts, blocks=True, label="status"),
            ObservedMetric("traffic_silent_sources", "Sources that fell silent.", silent_sources, blocks=True),
            ObservedMetric("traffic_hook_pending", "Messages to be sent.", parts.sender.pending, blocks=True),
            ObservedMetric("traffic_hook_dead", "Messages given up.", parts.sender.dead, blocks=True),
            ObservedMetric("traffic_hooks_disabled", "Hooks disabled.", parts.sender.disabled, blocks=True),
            ObservedMetric(
                "traffic_detection_failures", "Failed detections.", lambda: parts.detection.failures, is_counter=True
            ),
            ObservedMetric("traffic_sources", "Sources known to the rate limiter.", lambda: len(limiter)),
        ]
    )


def _intake(lake: Lake, settings: Settings, countries: CountryDatabase | None, clock: Clock) -> "LiveIngest":
    from data.ingest.live import LiveIngest  # noqa: PLC0415  # slow: loads the rules

    return LiveIngest(lake, settings.trusted_proxies, countries, settings.short_code_pattern, clock)

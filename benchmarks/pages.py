"""Measures the Overview of the dashboard: the bytes and requests of a view, its rendering time, and cold views compared
with the API's answer.
"""

import asyncio
import gzip
import itertools
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from benchmarks.bars import ALL_VISITS, DASHBOARD_ENDPOINT, GOACCESS_REPORT
from benchmarks.figures import OURS, Figure, beside, figure, in_turn, milliseconds
from benchmarks.made import LAST_DAY
from benchmarks.peers import World
from benchmarks.servers import get, key_of, server
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from data.links.index import LinkIndex
from queries import ENDPOINTS, Warehouse
from service.access.api_keys import ApiKeys
from service.access.page_context import COOKIE
from service.access.page_services import PageServices
from service.access.sessions import SessionStore
from service.app.page_parts import PageParts
from service.app.pages import PagesApp
from service.core.control_database import ControlDatabase
from service.core.http.compression import compress
from service.core.http.pools import Workers
from service.core.http.rate_limit import SourceResolver
from service.core.pages.rendering import Renderer
from service.core.settings import read_settings
from service.dashboard import panels
from service.dashboard.panel import Selection
from service.dashboard.tables import CellLinks
from service.hooks.registry import Hooks
from service.intake.link_api import LinkService, link_edits
from service.jobs.service import JobService, link_writes
from service.jobs.store import Jobs
from service.reports.answers import Answers
from service.reports.cache import AnswerCache

DAYS: Final = 30
"""Number of days in a cold view: few enough that the previous period, shown for comparison, also has visits."""
COLD_VIEWS: Final = 8
"""Number of cold views of each kind: all three kinds, with one warm-up each, need 27 of the 29 uncached periods."""
RENDERINGS: Final = 50
_LOADED: Final = re.compile(r'(?:href|src)="([^"#]*/static/[^"#]+)')
_ALL_DAYS: Final = f"start_date={WHOLE.start_date}&end_date={WHOLE.end_date}"


def pages(setting: Setting) -> Iterator[Figure]:
    """Yield all figures of the case, at every size."""
    for world in setting.worlds:
        for one in (*rendering(world), *_served(world)):
            yield replace(one, visits=world.visits)
    yield from _report(setting)


# Served


@dataclass(frozen=True)
class Browser:
    """A client that requests pages with the cookie of a session. Each request has its own source address."""

    port: int
    cookie: str

    @classmethod
    def signed_in(cls, port: int, lake: Lake) -> "Browser":
        """Return a browser with a new session for the queried organization."""
        with closing(ControlDatabase(lake)) as control:
            store = SessionStore(control)
            opened = store.open_by_link(store.create_link(WHOLE.organization))
        assert opened
        return cls(port, f"{COOKIE}={opened.secret}")

    def body(self, path: str) -> bytes:
        """Return the bytes of a response as transferred, compressed. Raises HTTPError unless the status is 2xx."""
        source = f"10.1.{next(_SOURCES) // 250}.{next(_SOURCES) % 250}"
        headers = {"Cookie": self.cookie, "Accept-Encoding": "gzip", "X-Forwarded-For": source}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request) as response:
            body: bytes = response.read()
        return body


_SOURCES: Final = itertools.count()


def _served(world: World) -> Iterator[Figure]:
    key = key_of(world.lake.root, WHOLE.organization)
    with server(world.lake.root) as (port, _):
        browser = Browser.signed_in(port, world.lake)
        page = browser.body(f"/app/?{_ALL_DAYS}")
        files = sorted(set(_LOADED.findall(gzip.decompress(page).decode())))
        sizes = [len(page), *(len(browser.body(file)) for file in files)]
        yield figure("first view of the Overview, bytes", "kB", [sum(sizes) / 1000])
        yield figure("first view of the Overview, requests", "requests", [len(sizes)])
        yield figure("later view of the Overview, bytes", "kB", [len(page) / 1000])
        yield figure("later view of the Overview, requests", "requests", [1])  # files are immutable

        days = _periods()
        ways = {
            "all": lambda: milliseconds(lambda: browser.body(f"/app/?{next(days)}")),
            "people": lambda: milliseconds(lambda: browser.body(f"/app/?{next(days)}&traffic_group=people")),
            "endpoint": lambda: milliseconds(lambda: get(port, f"/analytics/dashboard?{next(days)}", key)),
        }
        times = in_turn(ways, COLD_VIEWS)
        of_all = {OURS: times["all"], DASHBOARD_ENDPOINT: times["endpoint"]}
        yield from beside("cold Overview over HTTP", "ms", of_all)
        of_people = {OURS: times["people"], ALL_VISITS: times["all"]}
        yield from beside("cold Overview of people over HTTP", "ms", of_people)


def _periods() -> Iterator[str]:
    """Yield periods of equal length, each a day earlier, so none is cached; the period before each has visits, too."""
    for earlier in range(LAST_DAY.toordinal() - WHOLE.start_date.toordinal() - 2 * DAYS):
        end = LAST_DAY - timedelta(earlier)
        yield f"start_date={end - timedelta(DAYS - 1)}&end_date={end}"


# In this process


class _RecordingRenderer(Renderer):
    """A renderer that keeps the template and context of its last rendering."""

    template = ""
    context: Mapping[str, Any] = {}

    def render(self, template: str, context: Mapping[str, Any]) -> bytes:
        self.template, self.context = template, context
        return super().render(template, context)


def rendering(world: World) -> Iterator[Figure]:
    """Measure the steps from decoded answers to compressed bytes, each in milliseconds of CPU time of one thread."""
    noon = datetime.combine(LAST_DAY, datetime.min.time(), UTC) + timedelta(hours=12)
    warehouse, workers = Warehouse(world.lake), Workers()
    answers = Answers(warehouse, AnswerCache(), workers)
    control, targets, settings = ControlDatabase(world.lake), LinkIndex(world.lake), read_settings({})
    services = PageServices(
        lake=world.lake, control=control, api_keys=ApiKeys(control), sources=SourceResolver(), settings=settings,
        clock=lambda: noon, workers=workers,
    )  # fmt: skip
    store = Jobs(control)
    jobs = JobService(
        store=store, links=link_writes(store, workers.serves_others), warehouse=warehouse, workers=workers,
        clock=lambda: noon,
    )  # fmt: skip
    edits = link_edits(world.lake, workers.serves_others)
    links = LinkService(lake=world.lake, edits=edits, clock=lambda: noon)
    app = PagesApp(
        PageParts(services=services, answers=answers, targets=targets, jobs=jobs, hooks=Hooks(control), links=links)
    )
    renderer = app.context.renderer = _RecordingRenderer(app.context.root, workers.texts, app.context.command)
    try:
        asyncio.run(_view(app, Browser.signed_in(0, world.lake).cookie))
        body = asyncio.run(answers.body(ENDPOINTS["dashboard"], renderer.context["filters"].scope))
        steps = _steps(renderer, orjson.loads(body))
        samples = {name: [_cpu_milliseconds(step) for _ in range(RENDERINGS)] for name, step in steps.items()}
    finally:
        workers.close()
        warehouse.close()
        control.close()
    for name, times in samples.items():
        yield figure(f"rendering of the Overview: {name}", "ms", times)
    yield figure("rendering of the Overview", "ms", [sum(step) for step in zip(*samples.values(), strict=True)])


async def _view(app: PagesApp, cookie: str) -> None:
    """Request the Overview of all days once."""
    scope = {
        "type": "http", "method": "GET", "path": f"{app.context.root}/", "root_path": "", "scheme": "http",
        "query_string": _ALL_DAYS.encode(), "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"127.0.0.1"), (b"cookie", cookie.encode())],
    }  # fmt: skip
    statuses = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3_600)  # the browser does not disconnect
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401  # ASGI
        statuses.append(message.get("status"))

    await app(scope, receive, send)
    assert statuses[0] == 200, statuses


def _steps(renderer: _RecordingRenderer, dashboard: Mapping[str, Any]) -> dict[str, Callable[[], object]]:
    """Return the steps from the decoded answers to the compressed page."""
    filters = renderer.context["filters"]
    selection = Selection(filters, links=CellLinks("/app", "/app/", filters))
    members = {entry.name: dashboard[name] for name, entry in ENDPOINTS["dashboard"].members}
    filled = [(panel, members[panel.entry.name]) for panel in panels.OVERVIEW if panel.entry.name in members]
    page = renderer.render(renderer.template, renderer.context)
    return {
        "panels": lambda: [panel.filled(rows, selection) for panel, rows in filled],
        "template": lambda: renderer.render(renderer.template, renderer.context),
        "gzip": lambda: compress(page),
    }


def _cpu_milliseconds(step: Callable[[], object]) -> float:
    started = time.thread_time()
    step()
    return 1000 * (time.thread_time() - started)


# A peer


def _report(setting: Setting) -> Iterator[Figure]:
    """Measure the size of GoAccess's report, a single HTML file, on a log with as many visits as the smallest size."""
    if not shutil.which("goaccess"):
        raise SystemExit("goaccess is missing: apt-get install goaccess, or name other cases with --only.")
    lines = setting.sizes[0]
    report = setting.scratch / "report.html"
    options = ["--log-format=COMBINED", "--no-global-config", "--no-progress", "-o", str(report)]
    command = ["goaccess", str(setting.log(lines)), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = figure("first view of a report", "kB", [len(compress(report.read_bytes())) / 1000], lines)
    yield replace(size, who=GOACCESS_REPORT)

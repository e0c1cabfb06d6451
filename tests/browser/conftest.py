"""Fixtures for tests in a real browser: Chromium, a server with sample traffic, and signed-in pages.

They need Debian's package chromium and the dependency group "browser"; without these, the tests are skipped with a
reason, or fail if TRAFFIC_TESTS is "all". Each page that tests open has its own source address, sent in
X-Forwarded-For, to avoid the rate limit.
"""

import io
import itertools
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from data.links.exports import read_export
from data.links.links import change_links
from data.tasks.compaction import Compactor
from service.access.sessions import SessionStore
from service.core.clock import utc_now
from service.demo.countries import SampleCountries
from service.demo.sample import Sample
from service.hooks.records import HookChanges
from service.hooks.registry import Hooks
from service.jobs.implementations import Draft
from service.jobs.records import JobOutcome, Measure
from service.jobs.store import Jobs
from tests.browser.traffic import HOSTILE, WORDS, hostile_lines
from tests.service.jobs.findings import ANNA, broken
from tests.support.control import open_store
from tests.support.page_reading import link_of
from tests.support.visits import land, visit

HERE = Path(__file__).parent
VISITS = 4_000
DAYS = 40

NUMBERS = itertools.count(1)


def missing(what):
    """Skip the tests, or fail if all tests were requested."""
    if os.environ.get("TRAFFIC_TESTS") == "all":
        pytest.fail(f"{what}; with TRAFFIC_TESTS=all no test is skipped")
    pytest.skip(what)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Run these tests last: Playwright's event loop runs until the end, and other tests could not start one."""
    items.sort(key=lambda item: item.path.parent == HERE)


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium."""
    program = shutil.which("chromium")
    if program is None:
        missing("Chromium is not installed: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  # only the group has it
    except ImportError:
        missing("Playwright is not installed: uv run --group browser pytest tests/browser")
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-features=LocalNetworkAccessChecks"]  # made-up sites have no address
        browser = playwright.chromium.launch(executable_path=program, args=args)
        yield browser
        browser.close()


@dataclass
class Dashboard:
    """The running server of a lake, as a browser sees it: its address, sign-in links and cookies."""

    lake: Lake
    address: str
    names: dict

    def entrance(self, organization="acme"):
        """Return the URL of a new one-time link."""
        return f"{self.address}/app/enter?code={link_of(self.lake, organization, utc_now)}"

    def cookie(self, organization):
        """Return the cookie of a new session, as a signed-in browser keeps it. Signing in with the browser would also
        render a page."""
        with open_store(SessionStore, self.lake) as sessions:
            secret = sessions.open_by_link(sessions.create_link(organization)).secret
        return {"name": "traffic", "value": secret, "url": self.address, "httpOnly": True, "sameSite": "Lax"}


def lake_of(folder, organization, *samples):
    """Make a lake with sample visits and the links of the last sample. Its days are judged, as comparisons on pages
    require."""
    log, lake, now = folder / "access.log", Lake(folder / "lake", create=True), datetime.now(UTC)
    log.write_text("".join(f"{line}\n" for sample in samples for line in sample.lines()))
    samples[-1].write_links(folder / "links.csv")
    Importer(lake, countries=SampleCountries()).run(log, Options(organization))
    change_links(lake, organization, read_export(folder / "links.csv", now).links, now)
    Compactor(lake).run()
    return lake


def visits_of_jobs(now):
    """Generate ten requests a day for a path, of which seven failed until the path was redirected six days ago, and two
    visits by people whom ChatGPT sent to a path that never existed.
    """
    gone = {"path": "/gone", "bot_category": "ai_assistant", "agent": "ChatGPT-User", "operator": "OpenAI",
            "agent_kind": "assistant_fetch", "detection_method": "user_agent"}  # fmt: skip
    made_up = {"path": "/pricing-2026", "short_code": "pricing-2026", "status": 404, "bot_category": "ai_referral",
               "agent_kind": "referral", "detection_method": "referrer", "referrer": "chatgpt.com",
               "referrer_type": "ai"}  # fmt: skip
    shared = {"domain": "go.example.com", "ai_source": "ChatGPT", "confidence": "high"}
    for before in range(1, 21):
        at = now.replace(hour=9, minute=0, second=0, microsecond=0, tzinfo=None) - timedelta(days=before)
        for number in range(10):
            status = 404 if before > 6 and number < 7 else 301
            yield visit(visited_at=at + timedelta(minutes=number), status=status, **gone, **shared)
        if before < 3:
            yield visit(visited_at=now.replace(tzinfo=None) - timedelta(days=before), **made_up, **shared)


def jobs_of_acme(lake, now):
    """Make three jobs for acme, and for HOSTILE one job with each of an attacker's words.

    Return the ids of two of acme's jobs: one with a shipped implementation whose outcome is being measured, and one
    that accepts an implementation.
    """
    land(lake, "acme", visits_of_jobs(now))
    with open_store(Jobs, lake) as jobs:
        for number, path in enumerate(("/gone", "/old-price-list", "/" + "w" * 150)):
            jobs.upsert(broken(path, weight=10.0**number), now - timedelta(days=9))
        for number, word in enumerate(WORDS):
            jobs.upsert(broken(f"/{number}{word}", organization=HOSTILE), now)
        ids = {row.path: row.id for row in jobs.of("acme")}
        job_id = ids["/gone"]
        jobs.act("acme", job_id, "approve_fix", ANNA, now - timedelta(days=8), note="As discussed.")
        diff = (
            "--- a/redirects\n+++ b/redirects\n@@ -1 +1,2 @@\n /a https://example.com/a\n+/gone https://example.com/\n"
        )
        jobs.attach("acme", job_id, Draft("patch", "text/x-diff", diff), ANNA, now - timedelta(days=7))
        jobs.set_implementation_status("acme", job_id, 1, ANNA, now - timedelta(days=6), status="shipped")
        until = now.date() + timedelta(days=22)
        outcome = JobOutcome("waiting", Measure(14, 42, 60), Measure(5, 3, 30), 0.00005, now, until)
        jobs.set_outcome("acme", job_id, outcome, now)
        jobs.act("acme", ids["/old-price-list"], "approve_fix", ANNA, now)
        return job_id, ids["/old-price-list"]


def tested_hook(lake):
    """Make two hooks for acme, the second of them inactive and with an unsent test; return the second's id."""
    with open_store(Hooks, lake) as hooks:
        hooks.create("acme", "Chat", "https://chat.example/hooks/" + "x" * 80, ["job.created", "job.approved"])
        hook, _ = hooks.create("acme", "Coding agent", "https://automation.example/hook")
        hooks.send_test("acme", hook.id)
        hooks.change("acme", hook.id, HookChanges(active=False))
        return hook.id


@pytest.fixture(scope="session")
def dashboard(chromium, serving, tmp_path_factory):
    """A dashboard where acme has sample visits up to yesterday, and "hostile" has an attacker's visits."""
    folder, today = tmp_path_factory.mktemp("dashboard"), datetime.now(UTC)
    sample = Sample(VISITS, today.date() - timedelta(days=1), DAYS)
    lake = lake_of(folder, "acme", sample)
    (folder / "hostile.log").write_bytes(hostile_lines(today - timedelta(days=2)))
    Importer(lake).run(folder / "hostile.log", Options(HOSTILE))
    shipped, approved = jobs_of_acme(lake, today)
    names = {"short_code": sample.codes()[0], "job": shipped, "approved": approved, "hook": tested_hook(lake)}
    Compactor(lake).run()
    with serving(lake, trusted_proxies="127.0.0.1/32") as server:
        yield Dashboard(lake, server.address, names)
    lake.manifest.close()


@pytest.fixture
def names(dashboard):
    """The ids in the addresses of pages: the most visited link, two jobs and a hook."""
    return dashboard.names


@pytest.fixture
def opened(chromium, dashboard):
    """Open a blank page in a new browser context, signed out or signed in to an organization, and watch it for errors.

    `address` is the address of its server, by default the dashboard's.
    """
    contexts = []

    def opened(organization="acme", address=dashboard.address, **options):
        source = f"198.51.{os.getpid() % 256}.{next(NUMBERS) % 256}"
        context = chromium.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"} | options,
            extra_http_headers={"X-Forwarded-For": source},
        )
        contexts.append(context)
        if organization:
            context.add_cookies([dashboard.cookie(organization)])
        return Watched(context.new_page(), address)

    yield opened
    for context in contexts:
        context.close()


def enter(page, link):
    """Sign in with a one-time link."""
    page.goto(link)
    page.get_by_role("button", name="Sign in to").click()
    page.wait_for_url("**/app/")


class Watched:
    """A page in the browser, and its errors."""

    def __init__(self, page, address):
        self.page = page
        self.address = address
        self.problems = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", self._requested)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', event => console.error('CSP ' + event.violatedDirective))"
        )

    def goto(self, path, status=200):
        """Open a page under /app/."""
        response = self.page.goto(f"{self.address}/app/{path}")
        assert response.status == status, f"/app/{path} answered {response.status}"
        return self.page

    def overflow(self):
        """Return the number of pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def _heard(self, message):
        if message.type in {"error", "warning"}:
            self.problems.append(f"console: {message.text}")

    def _requested(self, request):
        if not request.url.startswith((f"{self.address}/", "data:")):
            self.problems.append(f"request to {request.url}")


@pytest.fixture
def axe(chromium):
    """Return a page's violations of axe-core's rules for WCAG 2.2 AA and best practices."""
    try:
        from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  # only the group has it
    except ImportError:
        missing("axe is not installed: uv run --group browser pytest tests/browser")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

    def violations(page):
        found = Axe().run(page, options={"runOnly": tags, "resultTypes": ["violations"]}).response["violations"]
        return [f"{one['id']}: {node['html'][:200]} {node['failureSummary']}" for one in found for node in one["nodes"]]

    return violations


@pytest.fixture(scope="session")
def pictures():
    """The folder for screenshots (TRAFFIC_PICTURES), or None."""
    folder = os.environ.get("TRAFFIC_PICTURES")
    return Path(folder) if folder else None


@pytest.fixture
def text_of():
    """Read the text of a PDF."""
    pypdf = pytest.importorskip("pypdf")

    def text_of(pdf):
        return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages)

    return text_of

"""Pages over many days: their work grows in proportion to the days, and ends when the reader leaves."""

import asyncio
import gc
import sys
import threading
from contextlib import closing
from datetime import datetime, timedelta

import orjson
import pytest

from data.links.index import LinkIndex
from queries import Warehouse
from service.core.encoding import encode
from service.core.pages.rendering import Renderer
from service.dashboard.content import LINK, PageContent, uncovered
from service.dashboard.navigation import NAMED
from service.dashboard.tables import CellLinks
from service.dashboard.views import SUBJECTS
from service.reports.filters import Filters
from tests.conftest import NOW
from tests.support.visits import land, visit

TODAY, DAYS = NOW.date(), 400
PLATFORMS = ("ChatGPT", "Claude", "Gemini", "Perplexity")


@pytest.fixture(scope="module")
def weekly(shared_lake):
    """A lake with a weekly visit from each platform, in which no log covers a day."""
    weeks = range(0, 2 * DAYS, 7)
    land(
        shared_lake,
        "acme",
        (
            visit(visited_at=datetime(*(TODAY - timedelta(week)).timetuple()[:3], 12), ai_source=name,
                  short_code="go", bot_category="ai_assistant", agent=f"{name}-User")
            for week in weeks for name in PLATFORMS
        ),
    )  # fmt: skip
    return shared_lake


def steps_of(work):
    """Return the number of Python lines that some work executes, including all functions that it calls."""
    steps, before = 0, sys.gettrace()

    def trace(_frame, event, _argument):
        nonlocal steps
        steps += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize("page", [*NAMED, LINK, *SUBJECTS.values()], ids=lambda page: page.title)
def test_twice_the_days_take_about_twice_the_work(weekly, page):
    steps = []
    with closing(Warehouse(weekly)) as warehouse:
        for days in (DAYS, 2 * DAYS):
            given = {"start_date": str(TODAY - timedelta(days - 1)), "end_date": str(TODAY)}
            given |= {"short_code": "go"} if page is LINK else {}
            filters = Filters.of(given, "acme", TODAY, LinkIndex(weekly))
            links = CellLinks("/app", f"/app/{page.path}", filters)

            def content(filters=filters, links=links):
                missing = uncovered(weekly, filters)
                return PageContent(
                    page, filters, weekly.manifest.statistics.stored_span("acme"), links, uncovered=missing, events=()
                )

            loaded = [
                orjson.loads(encode(warehouse.answer(entry, warehouse.snapshot(scope))))
                for entry, scope in content().wanted
            ]
            steps.append(steps_of(lambda content=content, loaded=loaded: content().filled(loaded)))
    assert steps[1] <= 2.2 * steps[0]


@pytest.fixture
def left(weekly, browsing):
    """Request an overview and disconnect once a given event is set; return the status and the event loop's errors."""
    complaints, sent, answered = [], [], threading.Event()

    async def asked(app, cookie, leaving):
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
        scope = {
            "type": "http", "method": "GET", "path": "/app/", "query_string": b"range=7d", "client": ("10.0.0.1", 1),
            "headers": [(b"cookie", b"traffic=" + cookie.encode())],
        }  # fmt: skip

        async def receive():
            await asyncio.to_thread(leaving.wait, 60)
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            answered.set()

        await app(scope, receive, send)
        await asyncio.sleep(0.1)  # until everything is cancelled
        gc.collect()  # futures report unretrieved errors when they are collected

    def left(leaving):
        with browsing(weekly) as browser:
            browser.client.portal.call(asked, browser.client.app, browser.client.cookies["traffic"], leaving)
        return sent[0]["status"], complaints

    left.answered = answered
    return left


def test_a_page_is_not_rendered_after_a_disconnect(left, monkeypatch):
    leaving, rendered, filled = threading.Event(), [], PageContent.filled

    def filled_while_the_reader_leaves(*given):
        leaving.set()
        left.answered.wait(30)
        return filled(*given)

    monkeypatch.setattr(PageContent, "filled", filled_while_the_reader_leaves)
    monkeypatch.setattr(Renderer, "render", lambda *given: rendered.append(given) or b"")
    assert left(leaving) == (499, [])
    assert rendered == []


def test_leaving_while_queries_run_logs_no_error(left, monkeypatch):
    leaving, answer = threading.Event(), Warehouse.answer

    def answer_while_the_reader_leaves(*given):
        leaving.set()
        return answer(*given)

    monkeypatch.setattr(Warehouse, "answer", answer_while_the_reader_leaves)
    assert left(leaving) == (499, [])

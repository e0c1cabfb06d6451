"""The page of the last 30 minutes."""

from datetime import timedelta

import pytest

from service.core.pages.formats import moment
from tests.conftest import NOW
from tests.support.visits import land, visit

AGENT = {"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "agent": "ChatGPT-User"}


def before(minutes, **more):
    return visit(visited_at=NOW.replace(tzinfo=None) - timedelta(minutes=minutes), **more)


@pytest.fixture
def live(lake, browsing):
    """Store some visits and return the live page."""

    def live(*visits, query=""):
        land(lake, "acme", visits)
        with browsing(lake) as browser:
            return browser.read(f"now{query}")

    return live


def test_the_live_page_counts_visits_of_the_last_30_minutes(live):
    page = live(before(1), before(2, **AGENT), before(29), before(30), before(90))
    figures = {one["data-field"]: one["value"] for one in page.one("ul", class_="tiles").all("data")}
    assert figures == {"human_clicks": "2", "ai_visits": "1", "other_visits": "0"}
    rows = page.one("section", id="minutes").one("tbody").all("tr")
    assert len(rows) == 30
    assert sum(int(row.all("data")[1]["value"]) for row in rows) == 3


def test_the_live_page_refreshes_while_visits_arrive(live):
    assert live(before(5)).one("button", data_follow=True).text == "Pause"


def test_the_live_page_does_not_refresh_after_a_log_has_ended(live):
    page = live(before(60))
    assert page.all("button", data_follow=True) == []
    assert "No visits in the last 30 minutes" in page.text
    assert f"The newest visit is from {moment(before(60)['visited_at'])}." in page.text


def test_the_live_page_links_to_the_usual_ranges(live):
    ranges = live(before(1), query="?domain=go.example").one("nav", aria_label="Range").all("a")
    assert [one["href"] for one in ranges[:2]] == [f"/app/?domain=go.example&range={name}" for name in ("7d", "30d")]
    assert ranges[-1]["aria-current"] == "page"


def test_the_live_page_keeps_its_filters_and_links_to_itself(live):
    page = live(before(1, domain="a.example"), before(1, domain="b.example"), query="?domain=a.example")
    (link,) = (one["href"] for one in page.all("a") if one.text == "Show the latest")
    assert link == "/app/now?domain=a.example"
    assert page.one("data", data_field="human_clicks")["value"] == "1"


def test_every_page_of_numbers_links_to_the_live_page(live, browsing, lake):
    live(before(1))
    with browsing(lake) as browser:
        (link,) = (one for one in browser.read("people?domain=a.example&range=90d").all("a") if one.text == "Now")
    assert link["href"] == "/app/now?domain=a.example"

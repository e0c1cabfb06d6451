"""Questions that owners ask are answered within three clicks, with the numbers counted from the log lines."""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from data.rules.releases import BrowserReleases
from queries import Scope
from service.core.clock import utc_now
from service.demo.countries import SampleCountries
from service.demo.sample import Sample
from service.jobs.store import Jobs
from tests.browser.conftest import Dashboard, enter, lake_of
from tests.recount import judged, recount
from tests.service.jobs.findings import broken
from tests.support.control import open_store
from tests.support.relog import read_log

TODAY = datetime.now(UTC).date()
LAST_OF_MONTH = TODAY.replace(day=1) - timedelta(1)
LAST_MONTH = Scope("owner", LAST_OF_MONTH.replace(day=1), LAST_OF_MONTH)
LAST_30_DAYS = Scope("owner", TODAY - timedelta(29), TODAY)
SAMPLES = (
    Sample(600, TODAY - timedelta(366), 8, links=300, seed=76),
    Sample(2_500, TODAY - timedelta(1), 64, links=300, seed=77),
)
"""Eight days a year ago, and the last 64 days, which include all of last month: visits that no other test has."""


@pytest.fixture(scope="module")
def shop(chromium, serving, tmp_path_factory):
    """The dashboard of an organization with the samples' visits, which the tests count in its log by other means."""
    folder = tmp_path_factory.mktemp("shop")
    lake, countries = lake_of(folder, "owner", *SAMPLES), SampleCountries()
    visits = read_log(folder / "access.log", "owner", None)
    lines = [visit | {"country": countries.lookup(visit["visitor"][1])} for visit in visits]
    with open_store(Jobs, lake) as jobs:
        for path, weight in (("/old", 5.0), ("/checkout", 5_000.0)):
            jobs.upsert(broken(path, organization="owner", weight=weight), utc_now())
    with serving(lake, trusted_proxies="127.0.0.1/32") as server:
        yield Dashboard(lake, server.address, {"visits": judged(lines, BrowserReleases(), SAMPLES[-1].codes())})
    lake.manifest.close()


class Clicks:
    """A signed-in browser, at first on the Overview, that counts clicks."""

    def __init__(self, page):
        self.page = page
        self.count = 0

    def on(self, *names, within="body"):
        """Click on links, buttons and check boxes by their names."""
        for name in names:
            part = self.page.locator(within)
            starts_so = re.compile(rf"^\s*{re.escape(name)}\b")
            part.locator("a, button, summary, label").filter(has_text=starts_so).first.click()
            self.count += 1

    def values(self, entry, field):
        """Return the numbers of a field in the table of an entry, as the API returns them."""
        table = self.page.locator(f"table[data-entry={entry}]").first
        place = table.locator("thead th").evaluate_all("all => all.map(th => th.dataset.field)").index(field)
        cells = table.locator(f"tbody tr > :nth-child({place + 1}) data")
        return cells.evaluate_all("all => all.map(one => Number(one.value))")

    def column(self, entry, field):
        """Return the texts of a field in the table of an entry, from top to bottom."""
        table = self.page.locator(f"table[data-entry={entry}]").first
        place = table.locator("thead th").evaluate_all("all => all.map(th => th.dataset.field)").index(field)
        return table.locator(f"tbody tr > :nth-child({place + 1})").all_text_contents()


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without"])
def clicks(request, shop, opened):
    watched = opened(None, shop.address, java_script_enabled=request.param)
    enter(watched.page, shop.entrance("owner"))
    clicks = Clicks(watched.page)
    yield clicks
    assert watched.problems == []
    assert clicks.count <= 3


def test_the_number_of_people_last_month_is_found(clicks, shop):
    clicks.on("More", "Last month")
    shown = clicks.page.locator("ul.tiles data[data-field=human_clicks]").get_attribute("value")
    assert int(shown) == recount("traffic-overview", shop.names["visits"], LAST_MONTH)["human_clicks"] > 0


def test_the_countries_of_people_are_found(clicks, shop):
    clicks.on("More", "Last month")
    clicks.on("People", within="nav")
    rows = recount("geographic", shop.names["visits"], LAST_MONTH)
    people = Counter({row["country"]: row["human_clicks"] for row in rows})
    shown = [int(text.strip().replace(",", "")) for text in clicks.column("geographic", "human_clicks")]
    assert shown == sorted((count for count in people.values() if count), reverse=True)[: len(shown)] != []


def test_paths_read_by_ai_are_found(clicks, shop):
    clicks.on("Paths", within="nav")
    clicks.on("AI", within="nav.groups")
    rows = recount("paths", shop.names["visits"], replace(LAST_30_DAYS, traffic_group="ai"))
    assert clicks.column("paths", "path") == [row["path"] for row in rows] != []


def test_links_without_visits_are_found(clicks, shop):
    clicks.on("Links", within="nav")
    clicks.on("unvisited only", "Find")
    visited = {v["short_code"] for v in shop.names["visits"] if LAST_30_DAYS.start_date <= v["day"]}
    unvisited = set(SAMPLES[-1].codes()) - visited
    assert f"of {len(unvisited):,} link" in clicks.page.locator("nav.pager").inner_text()
    assert set(clicks.column("all-links", "short_code")) <= unvisited


def test_the_sites_that_send_people_are_found(clicks, shop):
    clicks.on("People", within="nav")
    rows = recount("referrers", shop.names["visits"], replace(LAST_30_DAYS, traffic_group="people"))
    assert clicks.column("referrers", "referrer") == [row["referrer"] for row in rows[:100]]
    assert clicks.values("referrers", "visits") == [row["visits"] for row in rows[:100]] != []


def test_paths_read_by_an_ai_platform_are_found(clicks, shop):
    clicks.on("AI", within="nav")
    clicks.on("ChatGPT", within="main")
    rows = recount("paths", shop.names["visits"], replace(LAST_30_DAYS, ai_source="ChatGPT"))
    assert clicks.column("paths", "path") == [row["path"] for row in rows] != []
    for field in ("visits", "agent_fetches", "ai_referrals"):
        assert clicks.values("paths", field) == [row[field] for row in rows]


def test_failing_paths_are_listed_with_the_worst_first(clicks):
    clicks.on("To do", within="nav")
    assert clicks.page.locator("table.jobs td.untrusted").all_inner_texts() == ["/checkout", "/old"]
    assert clicks.page.locator("table.jobs tbody td data").first.inner_text() == "high"


def test_the_link_with_the_most_people_is_found(clicks, shop):
    clicks.on("Links", within="nav")
    clicks.on("By people", within="table[data-entry=all-links]")
    rows = recount("top-links", shop.names["visits"], LAST_30_DAYS)
    most = max(row["human_clicks"] for row in rows)
    assert clicks.values("all-links", "human_clicks")[0] == most > 0
    best = {row["short_code"] for row in rows if row["human_clicks"] == most}
    assert clicks.column("all-links", "short_code")[0] in best


def test_the_change_since_the_week_before_is_found(clicks, shop):
    clicks.on("7 days")
    clicks.page.locator(".compared summary").click()
    clicks.count += 1
    spans = [(TODAY - timedelta(6), TODAY - timedelta(1)), (TODAY - timedelta(12), TODAY - timedelta(7))]
    counts = [
        recount("traffic-overview", shop.names["visits"], Scope("owner", *span))["human_clicks"] for span in spans
    ]
    row = clicks.page.locator(".compared tbody tr", has_text="Visits by people")
    assert row.locator("td").all_inner_texts()[:2] == [f"{count:,}" for count in counts]


def test_the_cost_of_crawlers_is_shown_for_each_operator(clicks, shop):
    clicks.on("AI", within="nav")
    rows = recount("operators", shop.names["visits"], LAST_30_DAYS)
    for field in ("agent_fetches", "bytes_sent"):
        assert clicks.values("operators", field) == [row[field] for row in rows] != []


def test_days_without_data_are_shown_on_the_first_page(clicks):
    assert "No data for today yet." in clicks.page.locator("main").inner_text()

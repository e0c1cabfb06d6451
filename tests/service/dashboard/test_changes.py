"""Changes since the previous period: new names are listed, and rises and falls only if they are significant."""

import re
from contextlib import closing
from datetime import date, datetime, timedelta
from random import Random

import pytest

from benchmarks.outcomes import poisson
from data.tasks.compaction import Compactor
from queries import Scope, Warehouse
from service.dashboard.changes import MAX_NAMED, WRONG, changes_of
from service.dashboard.comparison import Comparison
from service.dashboard.report import Report
from tests.conftest import NOW
from tests.recount import recount
from tests.support.page_reading import cells_of
from tests.support.sql import answers
from tests.support.visits import land, visit

FIRST = date(2026, 1, 1)
NAMES = 36
LISTS = 150
"""Number of generated pairs of periods in which nothing happened."""
TODAY = NOW.date()


def compared(days):
    now = Scope("acme", FIRST + timedelta(days), FIRST + timedelta(2 * days - 1))
    return Comparison(now, Scope("acme", FIRST, FIRST + timedelta(days - 1)))


def made(mean_of, days, dice, clump=1, spread=0):
    """Generate rows of visits-by-name or visits-by-link: for each name and day, a random number of visits with the mean
    `mean_of(number, is_late)`, in clumps of `clump`; with `spread`, the mean itself varies."""
    for number in range(NAMES):
        for day in range(2 * days):
            mean = mean_of(number, day >= days) * (dice.gammavariate(spread, 1 / spread) if spread else 1)
            if visits := clump * poisson(dice, mean / clump):
                name, subject = f"name-{number}", ("agent", "", "referrer")[number % 3]
                named = {"subject": subject, "name": name} if subject else {"short_code": name, "domain": "go.example"}
                yield named | {"date": str(FIRST + timedelta(day)), "visits": visits}


def steady(number, _is_late):
    return 200 / (1 + number)


def found(mean_of, days, seed, **more):
    return changes_of([*made(mean_of, days, Random(seed), **more)], compared(days))


@pytest.mark.parametrize("days", [7, 29])
@pytest.mark.parametrize(
    "variation", [{}, {"clump": 5}, {"clump": 20}, {"spread": 3}], ids=["independent", "clumps", "large", "restless"]
)
def test_changes_are_rarely_listed_for_steady_visits(days, variation):
    lists = [[one for one in found(steady, days, seed, **variation) if one.kind != "new"] for seed in range(LISTS)]
    assert sum(map(bool, lists)) <= 1.5 * WRONG * LISTS  # if 15 of 150 are expected, chance gives 22 once in 25 runs
    assert sum(map(len, lists)) <= 0.01 * 30 * LISTS


@pytest.mark.parametrize("days", [6, 7, 29, 89])
def test_names_with_doubled_or_halved_visits_are_listed(days):
    def changing(number, is_late):
        return 50 if number > 1 else 100 * (2 - 1.5 * number if is_late else 1)

    changes = {(one.kind, one.name) for one in found(changing, days, 5)}
    assert {("rose", "name-0"), ("fell", "name-1")} <= changes


def test_at_most_three_changes_of_each_kind_are_named():
    changes = found(lambda number, is_late: 30 * (1 + 3 * (is_late and number < 9)), 29, 3)
    assert [one.kind for one in changes] == ["rose"] * MAX_NAMED


def test_a_name_without_earlier_visits_is_new():
    changes = found(lambda number, is_late: 10 * (is_late or number != 4), 7, 1)
    assert [(one.kind, one.name, one.before) for one in changes] == [("new", "name-4", 0)]


def test_a_new_name_with_few_visits_is_not_listed():
    rows = [{"subject": "agent", "name": "Once", "date": "2026-01-10", "visits": 4}]
    assert changes_of(rows, compared(7)) == []


def test_the_first_twenty_old_and_new_names_are_counted(lake):
    begins = {f"old-{number:02}": 6 for number in range(22)} | {f"new-{number:02}": 7 for number in range(22)}
    rows = [
        visit(visited_at=datetime(2026, 3, day, 9), agent=name, operator="A", bot_category="other_bot")
        for name, first in begins.items()
        for day in range(first, 12)
        for _ in range(30 - int(name[-2:]))
    ]
    land(lake, "acme", rows)
    scope = Scope("acme", date(2026, 3, 1), date(2026, 3, 11))  # the sixth is the day in the middle
    found = answers(lake, scope, ["visits-by-name"])["visits-by-name"]
    assert {row["name"] for row in found} == {name for name in begins if int(name[-2:]) < 20}
    counted = recount("visits-by-name", [row | {"organization": "acme"} for row in rows], scope)
    assert [row | {"date": str(row["date"])} for row in counted] == found


def drawn():
    """Generate visits on the twelve days before today: a referrer sends 8 visits a day, then 40; an agent appears on
    the last six days.
    """
    agent = {"bot_category": "ai_training", "agent": "GPTBot", "operator": "OpenAI", "agent_kind": "training"}
    for day in range(12):
        at = datetime(TODAY.year, TODAY.month, TODAY.day, 9) - timedelta(12 - day)
        for number in range((8, 40)[day >= 6]):
            yield visit(visited_at=at, path="/sale", short_code="sale", referrer="news.example", referrer_type="other",
                        visitor=number)  # fmt: skip
        if day >= 6:
            yield visit(visited_at=at, path="/", **agent)
    yield visit(visited_at=at + timedelta(1), path="/")  # a log that covers the last of them


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    land(shared_lake, "acme", drawn())
    Compactor(shared_lake, lambda: NOW).run()
    return shared_lake


@pytest.fixture
def panel(browser):
    return browser.read("?range=7d").one("section", id="visits-by-name")


def test_the_overview_lists_changes(panel):
    rows = [[cell.text for cell in cells_of(row)] for row in panel.one("tbody").all("tr")]
    assert rows == [
        ["New agent", "GPTBot", "6", "0"], ["Link rose", "sale", "240", "48"],
        ["Referrer rose", "news.example", "240", "48"],
    ]  # fmt: skip


def test_the_numbers_of_a_change_match_the_recounted_visits(panel):
    rows = [one | {"organization": "acme"} for one in drawn()]
    spans = [(TODAY - timedelta(6), TODAY - timedelta(1)), (TODAY - timedelta(12), TODAY - timedelta(7))]
    counts = [
        recount("visits-by-name", rows, Scope("acme", *span)) + recount("visits-by-link", rows, Scope("acme", *span))
        for span in spans
    ]
    for row in panel.one("tbody").all("tr"):
        _, name, *numbers = [cell.text for cell in cells_of(row)]
        assert numbers == [
            str(sum(one["visits"] for one in count if name in {one.get("name"), one.get("short_code")}))
            for count in counts
        ]


def test_a_change_links_to_its_page(panel):
    hrefs = [link["href"] for link in panel.one("tbody").all("a")]
    assert hrefs == [
        "/app/agents/GPTBot?range=7d", "/app/link?range=7d&domain=go.example&short_code=sale",
        "/app/?range=7d&f_referrer=news.example",
    ]  # fmt: skip


def test_without_a_previous_period_there_are_no_changes(browser):
    assert browser.read("?range=30d").all("section", id="visits-by-name") == []


@pytest.fixture
def text_of(shared_lake):
    """Return the report on some days as text."""

    def text_of(days):
        with closing(Warehouse(shared_lake)) as warehouse:
            return Report.load(shared_lake, warehouse, "acme", {"range": days}, TODAY).text()

    return text_of


def test_a_report_lists_changes(text_of):
    assert re.search(r"What changed\n.*\nNew agent +GPTBot +6 +0\nLink rose +sale +240 +48\n", text_of("7d"))


def test_a_report_without_a_previous_period_has_no_changes(text_of):
    assert "What changed" not in text_of("30d")

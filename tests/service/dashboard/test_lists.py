"""The list of all links: however many there are, each can be found by searching, sorting and paging."""

from datetime import datetime, timedelta
from itertools import cycle
from random import Random

import orjson
import pytest

from queries import ENTRIES, Scope
from service.core.encoding import encode
from tests.conftest import NOW
from tests.recount import recount
from tests.support.page_reading import as_cells, tables, tile_values
from tests.support.visits import land, links, visit

HIDDEN = {"links_found", "unique_visitors"}
FIELDS = [field.name for field in ENTRIES["all-links"].fields if field.name not in HIDDEN]
SORTABLE = [name for name in FIELDS if name != "tags"]
KNOWN = [
    {"organization": "acme", "short_code": f"code-{number}", "domain": ("", "go.example")[number % 7 == 0],
     "target_url": f"https://shop.example/Item-{number // 3}", "created_at": datetime(2026, 1, 1) + timedelta(number),
     "tags": ["Spring", "a, b"] if number % 90 == 0 else None}
    for number in range(250)
]  # fmt: skip
DICE = Random(37)
VISITS = [
    visit(visited_at=datetime(2026, 3, 1, 8) + timedelta(hours=number % 300), short_code=f"code-{DICE.randrange(260)}",
          domain=("go.example", "to.example")[number % 3 == 0], visitor=number % 9, status=(302, 404)[number % 11 == 0],
          bot_category=("human", "ai_assistant", "other_bot")[number % 3]) | {"organization": "acme"}
    for number in range(400)
]  # fmt: skip


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    land(shared_lake, "acme", VISITS)
    links(shared_lake, "acme", KNOWN)
    return shared_lake


def expected(**listing):
    scope = Scope("acme", NOW.date() - timedelta(29), NOW.date(), **listing)
    return as_cells(orjson.loads(encode(recount("all-links", VISITS, scope, KNOWN))), FIELDS)


def shown(page):
    return [{field: row[field] for field in FIELDS} for row in tables(page)["all-links", None]]


def followed(browser, page):
    """Return the rows of a page and of all following pages."""
    rows = shown(page)
    while after := page.all("a", rel="next"):
        page = browser.read(after[0]["href"])
        rows += shown(page)
    return rows


@pytest.mark.parametrize(
    ("field", "order"), [*zip(SORTABLE, cycle(("ascending", "descending")), strict=False), ("visits", "descending")]
)
def test_links_can_be_sorted_by_every_column_except_tags(browser, field, order):
    page = browser.read(f"links?sort={field}&order={order}")
    assert shown(page) == expected(sorted_by=field, ascending=order == "ascending")


def test_every_link_is_on_exactly_one_page_of_the_list(browser):
    rows = followed(browser, browser.read("links"))
    assert rows == [row for skipped in (0, 100, 200, 300) for row in expected(skipped=skipped)]
    assert len({(row["short_code"], row["domain"]) for row in rows}) == len(rows) > 250


@pytest.mark.parametrize("search", ["CODE-77", "item-7", "to.example", "spring", "A, B", "nowhere"])
def test_link_search_ignores_case_in_all_fields_of_a_link(browser, search):
    page = browser.read(f"links?search={search}")
    rows = expected(search=search)
    assert rows == (followed(browser, page)[:100] if rows else [])
    assert ("No links found." in page.text) == (not rows)
    assert page.one("input", name="search")["value"] == search


def test_unvisited_links_can_be_listed_and_counted_separately(browser):
    page = browser.read("links?visits=none")
    visited = {row["short_code"] for row in VISITS}
    rows = followed(browser, page)
    assert {row["short_code"] for row in rows} >= {link["short_code"] for link in KNOWN} - visited
    assert all(row["visits"] == "0" and row["last_visit"] == "" for row in rows)
    assert f"of {len(rows)} links" in page.one("nav", aria_label="Pages of links").text


def test_the_csv_of_a_link_search_has_every_matching_link(browser):
    page = browser.read("links?search=item&sort=target_url&part=2&range=7d")
    rows = browser.csv(page.one("section", id="all-links").one("a", class_="csv")["href"])
    start = NOW.date() - timedelta(6)
    scope = Scope("acme", start, NOW.date(), search="item", sorted_by="target_url", ascending=True, shown=1_000)
    found = recount("all-links", VISITS, scope, KNOWN)
    assert [row["short_code"] for row in rows] == [row["short_code"] for row in found]
    assert len(rows) > 200


def test_the_csv_of_the_top_links_has_all_links(browser):
    panel = browser.read("").one("section", id="top-links")
    rows = browser.csv(panel.one("a", class_="csv")["href"])
    assert {(row["short_code"], row["domain"]) for row in rows} == {
        (row["short_code"], row["domain"]) for row in expected(shown=1_000)
    }
    assert "The first 10 rows. The CSV file has all rows." in panel.text


def test_the_link_list_has_a_visitors_column_for_people(browser):
    heads = browser.read("links").one("section", id="all-links").all("th", data_field="people_visitors")
    assert [head.text for head in heads] == ["Visitors"]


def test_visitors_to_the_only_domain_equal_the_overview(lake, acme):
    at = datetime(2026, 3, 14, 10)
    kinds = {"human": (1, 2, 2, 3), "ai_referral": (3, 4), "other_bot": (5, 6, 7), "ai_training": (8,)}
    land(lake, "acme", [
        visit(visited_at=at, domain="go.example", bot_category=kind, visitor=visitor)
        for kind, visitors in kinds.items() for visitor in visitors
    ])  # fmt: skip
    (row,) = tables(acme.read("domains"))["domain-breakdown", None]
    assert (row["people_visitors"], tile_values(acme.read(""))["people_visitors"]) == ("4", "4")


def test_the_form_keeps_filters_and_order(browser):
    form = browser.read("links?range=7d&domain=go.example&sort=domain&order=descending").one("form", role="search")
    kept = {one["name"]: one["value"] for one in form.all("input", type="hidden")}
    assert kept == {"range": "7d", "domain": "go.example", "sort": "domain", "order": "descending"}


def test_a_target_with_several_short_codes_has_a_note(browser):
    page = browser.read("links?target_url=https://SHOP.example/Item-1")
    assert "3 short codes lead to this target; this page counts visits to the newest, code-5." in page.text
    assert [row["short_code"] for row in shown(page)] == ["code-5"]
    assert "short codes lead" not in browser.read("links?target_url=https://shop.example/Item-83").text


def test_a_day_without_visits_still_lists_the_links(browser):
    page = browser.read("links?start_date=2026-02-01&end_date=2026-02-02")
    assert (len(shown(page)), "of 250 links" in page.text) == (100, True)

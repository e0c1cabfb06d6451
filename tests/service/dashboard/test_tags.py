"""Tags of links on pages, in CSV and in reports: a row for each, which filters, and whose text stays text."""

import pytest

from tests.support.page_reading import tables
from tests.support.visits import land, links, visit

HOSTILE = '=<b>"spring"</b>'
LINKS = [
    {"short_code": "a", "target_url": "https://shop.example/a", "tags": ["mail", HOSTILE]},
    {"short_code": "b", "target_url": "https://shop.example/b", "tags": ["mail"]},
    {"short_code": "c", "target_url": "https://shop.example/c"},
]


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    people = [visit(short_code=code, visitor=number) for number, code in enumerate("aab")]
    land(shared_lake, "acme", [*people, visit(short_code="a", bot_category="ai_training"), visit(short_code="c")])
    links(shared_lake, "acme", LINKS)
    land(shared_lake, "rival", [visit(short_code="a")])
    links(shared_lake, "rival", [{"short_code": "a", "target_url": "https://shop.example/a"}])
    return shared_lake


def rows_of(page):
    rows = tables(page)["tags", None]
    return {row["tag"]: [row[name] for name in ("visits", "human_clicks", "ai_visits")] for row in rows}


def test_a_link_of_two_tags_counts_under_both(browser):
    page = browser.read("links")
    assert rows_of(page) == {"mail": ["4", "3", "1"], HOSTILE: ["3", "2", "1"]}
    assert "A visit to a link of two tags counts under both." in page.text


def test_a_tag_filters_the_page_until_its_chip_is_taken_away(browser):
    page = browser.read("links")
    (cell,) = [link for link in page.all("a") if link.text == HOSTILE]
    filtered = browser.read(cell["href"])
    assert {row["short_code"] for row in tables(filtered)["all-links", None]} == {"a"}
    assert f"Tag: {HOSTILE}" in filtered.text


def test_text_of_a_tag_stays_text(browser):
    assert "<b>" not in browser.get("links").text.partition("<main")[2]


def test_csv_escapes_a_tag_that_is_a_formula(browser):
    lines = browser.get("export/tags.csv").text.splitlines()
    assert lines[0] == "tag,visits,human_clicks,ai_visits,other_visits,unique_visitors,people_visitors,last_visit"
    assert [line for line in lines if line.startswith('"\'=<b>""spring""</b>",3,2,1,0,')] != []


def test_a_report_has_a_table_of_tags_where_links_have_some(traffic, shared_lake):
    days = ("--start-date", "2026-03-01", "--end-date", "2026-03-15", "--format", "text")
    assert "\nTags\n" in traffic("report", "--org", "acme", *days).out
    assert "\nTags\n" not in traffic("report", "--org", "rival", *days).out

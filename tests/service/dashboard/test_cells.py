"""Cells of tables: addresses, changes, hosts, shares and links that a narrow window can show."""

import pytest

from service.core.pages.columns import CHANGE, TableColumn, cell
from service.dashboard.tables import Table
from tests.support.page_reading import read

TARGET = TableColumn("target_url", "Target", "text")
SHARE = TableColumn("percentage", "Share", "share")
LINK = [TableColumn("short_code", "Link", "text"), TableColumn("domain", "Domain", "text")]


def shown(column, value):
    """Return the elements of a cell."""
    return read(str(cell(column, {column.field: value}, "plain", "")))


def rows(columns, *found):
    """Return the rows of a table as elements."""
    return read(str(Table(columns).body(found))).all("tr")


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("https://www.example.com/articles/launch-2026", ["example.com/articl", "es/launch-2026"]),
        ("http://example.com/", ["", "example.com/"]),
        ("javascript:alert(1)", ["javas", "cript:alert(1)"]),
    ],
)
def test_the_end_of_an_address_has_its_own_span(address, parts):
    data = shown(TARGET, address).one("data")
    assert [part.text for part in data.all("span")] == parts
    assert (data["value"], data["title"]) == (address, address)


@pytest.mark.parametrize(
    ("change", "text", "more"),
    [(12.3, "↑ 12 % more", " more"), (0.0, "→ unchanged", "unchanged"), (float("inf"), "★ none before", "none before")],
)
def test_the_words_of_a_change_are_in_their_own_span(change, text, more):
    found = shown(CHANGE, change)
    assert (found.text, found.one("span", class_="more").text) == (text, more)


def test_hosts_break_at_dots():
    assert str(cell(TableColumn("referrer", "Referrer", "text"), {"referrer": "news.example.com"}, "plain", "")) == (
        "news.<wbr>example.<wbr>com"
    )


def test_the_largest_share_has_a_full_bar():
    bars = [row.one("svg").all("rect")[1:] for row in rows([SHARE], *({"percentage": share} for share in (4, 2, 0)))]
    assert [[part["width"] for part in bar] for bar in bars] == [["100"], ["50"], []]


def test_a_short_code_cell_has_its_domain_for_narrow_windows():
    (row,) = rows(LINK, {"short_code": "go", "domain": "go.example"})
    assert row.one("th")["data-domain"] == "go.example"
    assert row.one("td")["class"] == "text short domain"


def test_short_text_is_never_wrapped():
    (row,) = rows(LINK, {"short_code": "two words", "domain": "a domain of more than this"})
    assert [row.one("th")["class"], row.one("td")["class"]] == ["text short", "text domain"]

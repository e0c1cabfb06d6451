"""A browser without scripts, limited to what tests need: it keeps its cookie, and parses pages."""

import csv
import io
import time
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from html.parser import HTMLParser

from service.access.sessions import SessionStore
from tests.conftest import NOW
from tests.support.control import open_store

OURS = {"Sec-Fetch-Site": "same-origin"}
VOID = {"meta", "link", "input", "option", "br", "wbr"}


@dataclass
class Element:
    tag: str
    attributes: dict
    children: list = field(default_factory=list)
    parent: "Element | None" = None

    def __getitem__(self, name):
        """Return the value of an attribute, which must exist."""
        return self.attributes[name]

    @property
    def text(self):
        """Return the text inside, without the text of charts."""
        shown = (child for child in self.children if getattr(child, "tag", "") != "svg")
        return "".join(child if isinstance(child, str) else child.text for child in shown)

    def all(self, tag="", **attributes):
        """Return every element inside this one with this tag and these attributes; "_" stands for "-", True for any
        value.
        """
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
        found, rest = [], [self]
        while rest:
            element = rest.pop()
            if (
                element is not self
                and (not tag or element.tag == tag)
                and all(
                    name in element.attributes and value in {True, element.attributes[name]}
                    for name, value in wanted.items()
                )
            ):
                found.append(element)
            rest += [child for child in reversed(element.children) if isinstance(child, Element)]
        return found

    def one(self, tag="", **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    def row(self, words):
        """Return the only table row that contains these words."""
        (found,) = (row for row in self.all("tr") if words in row.text)
        return found


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = self.open = Element("", {})

    def handle_starttag(self, tag, attributes):
        element = Element(tag, dict(attributes), parent=self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open.tag == tag, f"</{tag}> closes <{self.open.tag}>"
        self.open = self.open.parent

    def handle_data(self, data):
        self.open.children.append(data)


def read(html):
    """Return the elements of a page, which must be nested correctly."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open is reader.root, f"<{reader.open.tag}> is not closed"
    return reader.root


def tables(page):
    """Return the answers that a page shows: rows by endpoint and part, each cell as the text of the API's value."""
    found = {}
    for table in page.all("table", data_entry=True):
        fields = [head.attributes.get("data-field") for head in table.one("thead").all("th")]
        rows = [
            {
                name: value_of(cell)
                for name, cell in zip(fields, cells_of(row), strict=True)
                if name not in {None, "previous_visits"}  # of another answer, or of no answer
            }
            for row in table.one("tbody").all("tr")
        ]
        found[table["data-entry"], table.attributes.get("data-part")] = rows
    for facts in page.all("dl", data_entry=True):  # the only row of an answer
        found[facts["data-entry"], None] = [{one["data-field"]: value_of(one) for one in facts.all("dd")}]
    return found


def cells_of(row):
    return [child for child in row.children if isinstance(child, Element)]


def value_of(cell):
    """Return the API's value for a cell, as text."""
    data = cell.all("data")
    return data[0]["value"] if data else cell.text


def as_text(value):
    """Return a value from the API's JSON in the form of a cell."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return ", ".join(value) if isinstance(value, list) else str(value)


def as_cells(answer, fields=()):
    """Return the rows of an answer in the form of cells, optionally with only these fields."""
    return [{name: as_text(row[name]) for name in fields or row} for row in answer]


def as_shown(answer, rows):
    """Return the rows of an answer as a table shows them.

    Rows over time get the number of visits by neither people nor AI. Rows with a proof get its words, and no visits per
    answer if the table shows none. Rows about people are those with visits by people, sorted by their number, and get
    shares.
    """
    if rows and "other_visits" in rows[0] and "other_visits" not in answer[0]:
        answer = [
            row | {"other_visits": row["total_visits"] - row["human_clicks"] - row["ai_visits"]} for row in answer
        ]
    if rows and "proof" in rows[0]:
        return [
            row
            | {
                "proof": rows[number]["proof"],  # in words
                "visits_per_answer": rows[number]["visits_per_answer"] and row["visits_per_answer"],
            }
            for number, row in enumerate(answer)
        ]
    if not rows or "share_of_people" not in rows[0]:
        return answer
    whole = sum(row["human_clicks"] for row in answer)
    shares = [Decimal(100 * row["human_clicks"]) / whole for row in answer]
    by_people = [
        row | {"share_of_people": float(share.quantize(Decimal("0.01"), ROUND_HALF_UP))}
        for row, share in zip(answer, shares, strict=True)
        if row["human_clicks"]
    ]
    return sorted(by_people, key=lambda row: -row["human_clicks"])


def wait_until(is_so):
    """Repeat a check until it succeeds; fail if it has not succeeded within a minute."""
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def tile_values(page):
    """Return the values of an overview's tiles by field."""
    tiles = page.one("ul", data_entry="figures").all("data")
    return {data["data-field"]: data["value"] for data in tiles}


class Browser:
    """A browser without scripts, over an application or a server; it does not follow redirects by itself."""

    def __init__(self, client, base=""):
        self.client = client
        self.base = base

    def get(self, path, **how):
        """Request a page under /app/, or any path that begins with a slash."""
        return self.client.get(self._address(path), **how)

    def read(self, path, status=200):
        response = self.get(path)
        assert response.status_code == status, (path, response.status_code, response.text[:500])
        return read(response.text)

    def csv(self, path):
        """Return the rows of a CSV file, by the names in its first line."""
        return list(csv.DictReader(io.StringIO(self.get(path).text)))

    def post(self, path, headers=OURS, **fields):
        return self.client.post(self._address(path), data=fields, headers=headers)

    def enter(self, code):
        return self.post("enter", code=code)

    def _address(self, path):
        return path if path.startswith("/") else f"{self.base}/app/{path}"


def link_of(lake, organization="acme", clock=lambda: NOW, **how):
    """Return a new sign-in code for an organization."""
    with open_store(SessionStore, lake, clock) as sessions:
        return sessions.create_link(organization, **how)

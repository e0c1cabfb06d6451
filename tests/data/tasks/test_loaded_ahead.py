"""Prefetched pages, and whether a past day shows that they were opened. test_judging.py recounts them."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from data.signals import BITS
from data.tasks.compaction import Compactor
from tests.support.lakes import rows_of
from tests.support.visits import land, visit

NOON = datetime(2026, 3, 4, 12)
AHEAD, FILE = BITS["loaded_ahead"], BITS["file"]


def judged(lake, requests, **columns):
    """Judge requests, each given as a second and a path, and return the unfollowed paths: `+` marks prefetched pages,
    and files have a dot.
    """
    visits = []
    for second, path in requests:
        bits = (AHEAD if path.startswith("+") else 0) | (FILE if "." in path else 0)
        common = {"visited_at": NOON + timedelta(seconds=second), "visitor": 1, "short_code": None}
        visits.append(visit(**common | {"path": path.removeprefix("+"), "signals": bits or None} | columns))
    land(lake, "acme", visits)
    Compactor(lake, lambda: datetime(2026, 3, 5, 8, tzinfo=UTC)).run()
    return sorted(row["path"] for row in rows_of(lake) if row["signals"] & BITS["unfollowed"])


EXAMPLES = {
    "nothing follows": ([(0, "/"), (1, "+/a")], ["/a"]),
    "files of the page before follow": ([(0, "/"), (1, "+/a"), (2, "/x.png")], ["/a"]),
    "a later file follows": ([(0, "/"), (1, "+/a"), (2.1, "/x.png")], []),
    "a file follows with no page before": ([(0, "+/a"), (0, "/x.png")], []),
    "only the newest is opened": ([(0, "/"), (1, "+/a"), (1.5, "+/b"), (9, "/x.png")], ["/a"]),
    "at one moment, the last by path is newest": ([(0, "/"), (0, "+/b"), (0, "+/a"), (9, "/x.png")], ["/a"]),
    "one page after another is opened": ([(0, "/"), (9, "+/a"), (9.2, "/x.png"), (20, "+/b"), (20.2, "/y.png")], []),
    "files loaded ahead show nothing": ([(0, "/"), (1, "+/a"), (4, "+/x.png")], ["/a"]),
    "the next page follows": ([(0, "/"), (1, "+/a"), (1800, "/b")], []),
    "the next page follows too late": ([(0, "/"), (1, "+/a"), (1802, "/b")], ["/a"]),
    "a file follows too late": ([(0, "/"), (1, "+/a"), (1802, "/x.png")], ["/a"]),
    "the page is requested again": ([(0, "/"), (1, "+/a"), (9, "/a"), (9.5, "/x.png")], ["/a"]),
    "a page at the same moment comes first": ([(1, "/"), (1, "+/a"), (1, "/x.png")], ["/a"]),
}


@pytest.mark.parametrize(("requests", "unfollowed"), EXAMPLES.values(), ids=EXAMPLES)
def test_later_requests_show_which_pages_were_opened(lake, requests, unfollowed):
    assert judged(lake, requests) == unfollowed


@pytest.mark.parametrize("other", [{"visitor": 2}, {"domain": "other.example"}], ids=["visitor", "domain"])
def test_other_visitors_do_not_show_that_a_page_was_opened(lake, other):
    land(lake, "acme", [visit(visited_at=NOON + timedelta(minutes=1), path="/b", **{"visitor": 1} | other)])
    assert judged(lake, [(0, "/"), (1, "+/a")]) == ["/a"]


def test_visits_without_an_address_are_not_judged(lake):
    assert judged(lake, [(0, "/"), (1, "+/a")], visitor=None) == []


def test_a_page_in_another_file_shows_that_a_page_was_opened(lake):
    land(lake, "acme", [visit(visited_at=NOON + timedelta(minutes=1), visitor=1, short_code=None, path="/b")])
    assert judged(lake, [(0, "/"), (1, "+/a")]) == []


def test_a_file_that_records_no_facts_is_judged_by_its_visits(lake):
    judged(lake, [(0, "/"), (1, "+/a")])
    with closing(sqlite3.connect(lake.root / "manifest.sqlite")) as db, db:
        db.execute("UPDATE files SET facts = 0, behaviour_version = 0")
    assert judged(lake, []) == ["/a"]

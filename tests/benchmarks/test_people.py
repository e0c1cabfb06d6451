"""The evidence about people: labelled page views, planted fleets, and the shares of both."""

from collections import Counter
from datetime import date

from benchmarks.headed_days import FILE as headed_file
from benchmarks.headed_days import HeadedDay, headed_days
from benchmarks.people import bursts, interval, of_days, of_fleets, of_headed, of_views, shares
from benchmarks.viewed import FILE, View, views
from benchmarks.visitor_days import FILE as days_file
from benchmarks.visitor_days import VisitorDay, visitor_days
from data.signals import SIGNALS

NEW = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Safari/537.36"
NOTHING = View(
    "a", True, date(2026, 3, 4), "machine", "-", 200, False, 1, 0, 0, 0, 0, False, 0, 0, 1, 0, False, 0, 0, 0, 0, False,
    False, (), NEW.format("145.0.0.0"),
)  # fmt: skip
NO_DAY = VisitorDay(
    "a", "chosen", date(2026, 3, 4), "machine", "-", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, False, False, 0, False,
    NEW.format("145.0.0.0"),
)  # fmt: skip


def test_the_file_of_page_views_is_small():
    assert FILE.stat().st_size < 20_000


def test_views_are_labelled_machine_person_or_doubtful():
    assert {view.label for view in views()} == {"machine", "person", "doubtful"}


def test_there_are_many_views_and_many_are_by_people():
    labels = Counter(view.label for view in views())
    assert labels.total() >= 600
    assert labels["person"] >= 150


def test_views_come_from_several_sites():
    assert len({view.site for view in views()}) >= 8


JUDGED = [
    ({}, set()),
    ({"probes_missing": 1}, {"probed"}),
    ({"probes_redirected": 3}, {"probed", "scanned"}),
    ({"attacked": True}, {"attacked", "probed"}),
    ({"user_agent": NEW.format("79.0.3945.88")}, {"outdated"}),
    ({"status": 404, "found": 0, "missing": 6}, {"errors"}),
    ({"status": 404, "found": 0, "followed": True}, set()),
    ({"found": 40, "seconds": 60}, {"breadth"}),
    ({"found": 200, "seconds": 199}, {"breadth", "sweep"}),
    ({"network": "hosting"}, {"hosting_single"}),
    ({"network": "hosting", "found": 3}, set()),
    ({"network": "hosting", "found": 3, "loading": 3}, {"hosting_bare"}),
    ({"network": "hosting", "status": 403, "found": 0}, {"hosting_unserved"}),
    ({"network": "bot"}, {"bot_network"}),
    ({"has_files": True, "user_agent": NEW.format("139.0.0.0")}, {"superseded_bare"}),
    ({"loads": True, "agent_pages": 40}, {"no_assets"}),
    ({"loads": True, "user_agent": NEW.format("128.0.0.0")}, {"stale", "superseded_bare"}),
    ({"loads": True, "user_agent": NEW.format("128.0.0.0"), "files": 1, "agent_files": 1}, set()),
]
"""Overridden fields of a view, and the signals of its day."""


def test_the_day_of_a_view_gets_its_signals():
    rows = of_views([NOTHING._replace(**changes) for changes, _ in JUDGED])
    assert all(row.landed for row in rows)
    assert [{signal.name for signal in SIGNALS if row.signals & signal.bit} for row in rows] == [
        names for _, names in JUDGED
    ]
    assert [row.seen for row in rows] == [not names - {"breadth"} for _, names in JUDGED]


def test_no_person_in_the_page_views_came_from_a_hosting_network():
    assert Counter(view.label for view in views() if view.network != "-") == {"machine": 224}


def test_the_visitor_day_file_is_small_and_has_known_labels():
    assert days_file.stat().st_size < 20_000
    read = list(visitor_days())
    assert Counter(one.label for one in read) == {"machine": 349, "person": 148, "doubtful": 23}
    assert Counter(one.part for one in read) == {"chosen": 204, "unseen": 214, "later": 102}
    assert len({one.site for one in read}) == 22


DAYS = [
    ({}, set()),
    ({"network": "bot"}, {"bot_network"}),
    ({"network": "hosting"}, {"hosting_single"}),
    ({"network": "hosting", "served": 3}, set()),
    ({"network": "hosting", "loading": 3}, {"hosting_single", "hosting_bare"}),
    ({"network": "hosting", "loading": 3, "icons": 1}, {"hosting_single", "hosting_bare"}),
    ({"network": "hosting", "loading": 3, "parts": 1}, set()),
    ({"network": "hosting", "served": 0, "refused": 2}, {"hosting_unserved"}),
    ({"network": "hosting", "served": 0, "redirects": 1}, {"hosting_unserved"}),
    ({"network": "hosting", "served": 0, "clicks": 1}, set()),
    ({"network": "hosting", "user_agent": NEW.format("130.0.0.0")}, {"hosting_single", "hosting_superseded"}),
    ({"has_files": True, "user_agent": NEW.format("139.0.0.0")}, {"superseded_bare"}),
    ({"has_files": True, "served": 0, "refused": 1, "user_agent": NEW.format("139.0.0.0")}, {"superseded_unserved"}),
    (
        {"has_files": True, "served": 0, "parts": 1, "is_referred": False, "user_agent": NEW.format("139.0.0.0")},
        {"superseded_unserved"},
    ),
    ({"has_files": True, "served": 0, "parts": 1, "user_agent": NEW.format("139.0.0.0")}, set()),
    ({"served": 0, "refused": 2, "unaccepted": 2}, {"probed"}),
    ({"served": 0, "refused": 2, "unaccepted": 1}, set()),
    ({"network": "hosting", "has_files": True, "hosted": 2, "hosted_pages": 2}, {"hosting_single", "hosting_fleet"}),
    ({"network": "hosting", "has_files": True, "hosted": 2, "hosted_pages": 2, "others": 4}, {"hosting_single"}),
    (
        {"network": "hosting", "has_files": True, "hosted": 2, "hosted_pages": 2, "agent_loads": True},
        {"hosting_single"},
    ),
    (
        {"network": "hosting", "has_files": True, "hosted": 2, "hosted_pages": 2, "agent_clicks": True},
        {"hosting_single"},
    ),
]
"""Overridden fields of a visitor-day, and its signals."""


def test_a_visitor_day_gets_its_signals():
    rows = of_days([NO_DAY._replace(**changes) for changes, _ in DAYS])
    assert all(row.landed for row in rows)
    assert [{signal.name for signal in SIGNALS if row.signals & signal.bit} for row in rows] == [
        names for _, names in DAYS
    ]


def test_networks_convict_no_person_in_the_visitor_days():
    rows = of_days(list(visitor_days()))
    halves = [row for row in rows if row.group != "later"]
    assert Counter(row.label for row in halves if not row.seen) == {"machine": 238, "doubtful": 2}
    assert Counter(row.label for row in halves if not row.landed) == {"machine": 29}


def test_a_sixth_of_visitor_days_with_pages_are_machines():
    read = [one for one in visitor_days() if one.has_pages and one.part != "later"]
    assert Counter(row.label for row in of_days(read) if row.seen) == {"person": 124, "machine": 30, "doubtful": 14}


def test_most_machines_left_without_pages_took_a_single_file():
    read = [one for one in visitor_days() if not one.has_pages and one.part != "later"]
    left = [(row.label, one.parts) for row, one in zip(of_days(read), read, strict=True) if row.seen]
    assert Counter(left) == {("machine", 1): 7, ("machine", 0): 2, ("person", 0): 1}


def test_no_person_on_the_later_sites_is_convicted():
    rows = of_days([one for one in visitor_days() if one.part == "later"])
    assert Counter(row.label for row in rows if not row.seen) == {"machine": 60, "doubtful": 2}
    assert Counter(row.label for row in rows if not row.landed) == {"machine": 6}


def test_fetched_networks_convict_no_person():
    rows = of_days(list(visitor_days(has_list=True)))
    assert Counter(row.label for row in rows if not row.seen) == {"machine": 306, "doubtful": 5}


def test_the_file_of_days_with_headers_is_small():
    assert headed_file.stat().st_size < 5_000
    assert Counter(one.day.label for one in headed_days()) == {"machine": 106, "person": 49, "doubtful": 1}


HEADED = [
    ({}, {}, set()),
    ({"fetch": "absent", "fetching": 3}, {}, {"no_fetch_metadata"}),
    ({"fetch": "half", "fetching": 3}, {}, {"no_fetch_metadata"}),
    ({"fetch": "absent", "fetching": 2}, {}, set()),
    ({"fetch": "-", "fetching": 3}, {}, set()),
    ({"language": "absent", "speaking": 3}, {}, {"no_language"}),
    ({"language": "absent", "speaking": 2}, {}, set()),
    ({}, {"served": 0, "refused": 1, "others": 1, "user_agent": NEW.format("139.0.0.0")}, {"superseded_unserved"}),
    ({"serves": False}, {"served": 0, "refused": 1, "others": 1, "user_agent": NEW.format("139.0.0.0")}, set()),
]
"""Overridden headers of a visitor-day, its other overridden fields, and its signals."""


def test_headers_convict_a_visitor_day():
    known = HeadedDay(NO_DAY, True, "sent", 0, "sent", 0)
    read = [known._replace(day=NO_DAY._replace(**fields), **changes) for changes, fields, _ in HEADED]
    assert [{signal.name for signal in SIGNALS if row.signals & signal.bit} for row in of_headed(read)] == [
        names for *_, names in HEADED
    ]


def test_no_person_with_headers_is_convicted():
    rows = of_headed(list(headed_days()))
    assert all(row.landed for row in rows)
    assert Counter(row.label for row in rows if not row.seen) == {"machine": 88}
    assert Counter(row.label for row in of_headed(list(headed_days(has_list=True))) if not row.seen) == {"machine": 90}


def test_planted_people_are_kept_and_machines_are_found():  # imports 17,000 lines
    rows = of_fleets()
    assert all(row.seen for row in rows if row.label == "person" and row.landed)
    lost = {row.group for row in rows if row.label == "machine" and row.landed and not row.seen}
    assert lost == {
        "a mail scanner that opens links before people do", "600 links in twenty minutes by an old browser",
        "price scrapers at a person's pace, of an old browser", "a guesser of codes",
        "a scanner with a few probes among its paths", "a link checker, a link a second",
    }  # fmt: skip
    called, *_, people_lost = shares(rows, lambda row: row.seen)
    assert (called, people_lost.partition(" ")[0]) == (sum(row.seen for row in rows), "0.0")


def test_shares_have_wilson_intervals():
    assert interval(0, 10) == "0.0 (0.0–27.8)"
    assert interval(5, 10) == "50.0 (23.7–76.3)"
    assert interval(0, 0) == "-"


def test_bursts_of_links_affect_gateways_and_people_alike():
    found = bursts()
    taken = {name: found[name] for name in found if "gateway" in name or "carrier" in name}
    assert taken == {
        "a mail gateway that opens all links of a message within five seconds": 3000,
        "a mail gateway that opens each link from another address": 0,
        "2,000 people of a mobile carrier behind one address": 1339,
    }

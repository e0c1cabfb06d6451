"""Visits set aside as requests for files or by their owner's rules: from logs, live, and in reclassification."""

import json
from datetime import UTC, datetime

import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.rules.own_rules import checked_exclusion
from data.signals import BITS, REASONS_ASIDE
from data.store.pending import flush_all
from data.tasks.reclassification import ReasonChange, Reclassifier
from tests.support.lakes import rows_of
from tests.support.user_agents import CHROME
from tests.support.visits import land, visit

SCRIPT = {"scheme": "http", "accept": "application/json, */*", "accept_language": "de"}
REQUESTS = [
    ({"path": "/style.css"}, "file"),
    ({"path": "/a/b/Photo.JPG"}, "file"),
    ({"path": "/app.js?v=2.1"}, "file"),
    ({"path": "/app.js.map"}, "file"),
    ({"path": "/feed.xml"}, ""),
    ({"path": "/sale"}, ""),
    ({"path": "/page.html"}, ""),
    ({"path": "/css"}, ""),
    ({"path": "/wp-content/plugins/x.php.css/../.env"}, ""),
    ({"path": "/.git/logo.png"}, ""),  # a probe
    ({"path": "/chat", "status": 101}, "file"),
    ({"path": "/data", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"}, "file"),
    ({"path": "/data", "sec_fetch_dest": "image"}, "file"),
    ({"path": "/.env", "sec_fetch_dest": "image"}, ""),
    ({"path": "/data", **SCRIPT}, "file"),
    ({"path": "/.env", **SCRIPT}, ""),
    ({"path": "/data", **SCRIPT, "user_agent": "GPTBot/1.3"}, ""),
    ({"path": "/app", "sec_fetch_mode": "same-origin", "sec_fetch_dest": "empty"}, ""),  # a page by a service worker
]  # fmt: skip
OWN = [
    ({"path": "/a", "ip": "203.0.113.7"}, "own_address"),
    ({"path": "/a", "ip": "203.0.114.7"}, ""),
    ({"path": "/a", "ip": "2001:db8::7"}, "own_address"),
    ({"path": "/a", "user_agent": "uptimekuma/1.23"}, "own_rule"),
    ({"path": "/a", "user_agent": CHROME}, ""),
    ({"path": "/admin"}, "own_rule"),
    ({"path": "/admin/users?page=2"}, "own_rule"),
    ({"path": "/administration"}, ""),
    ({"path": "/a.b"}, "own_rule"),
    ({"path": "/aXb"}, ""),
    ({"path": "/admin/logo.png", "ip": "203.0.113.7"}, "file own_address own_rule"),
]
EXCLUDED = [
    ("address", "203.0.113.0/24"), ("address", "2001:db8::/32"), ("agent", "UptimeKuma/"), ("path", "/admin/"),
    ("path", "/a.b"),
]  # fmt: skip


def exclude(lake, organization="acme"):
    for rule in EXCLUDED:
        assert lake.manifest.exclusions.add(organization, checked_exclusion(*rule))


NOW = datetime(2026, 3, 1, 11, tzinfo=UTC)


def reasons(bits):
    return " ".join(one.name for one in REASONS_ASIDE if (bits or 0) & one.bit)


def lines_of(requests):
    for number, (request, _) in enumerate(requests):
        time = f"2026-03-01T10:{number // 60:02}:{number % 60:02}Z"
        yield json.dumps({"domain": "go.example", "user_agent": CHROME, "status": 200, "time": time} | request)


def landed(lake, requests):
    """Return the reasons for setting aside the visits in the lake, in order of time."""
    rows = sorted(rows_of(lake), key=lambda row: row["visited_at"])
    assert len(rows) == len(requests)
    return [reasons(row["signals"]) for row in rows]


@pytest.mark.parametrize("requests", [REQUESTS, OWN], ids=["files", "own"])
def test_log_visits_land_with_the_reason_they_are_set_aside(logs, requests):
    exclude(logs.lake, logs.own())
    logs.load("".join(f"{line}\n" for line in lines_of(requests)), Options("acme"))
    rows = sorted(logs.visits(), key=lambda row: row["visited_at"])
    assert [reasons(row["signals"]) for row in rows] == [reason for _, reason in requests]


@pytest.mark.parametrize("requests", [REQUESTS, OWN], ids=["files", "own"])
def test_live_visits_land_with_the_reason_they_are_set_aside(lake, requests):
    exclude(lake)
    LiveIngest(lake, now=lambda: NOW).land([Submission("acme", [line.encode() for line in lines_of(requests)])])
    flush_all(lake)
    assert landed(lake, requests) == [reason for _, reason in requests]


def test_a_new_rule_sets_aside_the_next_live_visits(lake):
    intake, line = LiveIngest(lake, now=lambda: NOW), next(lines_of([({"path": "/admin"}, "")])).encode()
    intake.land([Submission("acme", [line])])
    exclude(lake)
    intake.land([Submission("acme", [line])])
    flush_all(lake)
    assert sorted(reasons(row["signals"]) for row in rows_of(lake)) == ["", "own_rule"]


def test_rules_apply_only_to_their_organization(lake):
    exclude(lake)
    line = next(lines_of([({"path": "/admin"}, "")])).encode()
    LiveIngest(lake, now=lambda: NOW).land([Submission("bee", [line])])
    flush_all(lake)
    assert [row["signals"] for row in rows_of(lake, "bee")] == [None]


def set_aside(lake):
    return [(*known.rule, known.visits) for known in lake.manifest.exclusions.records("acme")]


COUNTED = [
    ("address", "2001:db8::/32", 1), ("address", "203.0.113.0/24", 2), ("agent", "UptimeKuma/", 1),
    ("path", "/a.b", 1), ("path", "/admin", 3),
]  # fmt: skip


@pytest.fixture
def importer(lake):
    """An importer into a lake with rules that exclude the owner's visits."""
    exclude(lake)
    importer = Importer(lake)
    yield importer
    importer.readers.close()


@pytest.fixture
def own_log(tmp_path):
    log = tmp_path / "access.json"
    log.write_text("".join(f"{line}\n" for line in lines_of(OWN)))
    return log


def test_visits_from_a_log_are_counted_by_rule(lake, importer, own_log):
    summary = importer.run(own_log, Options("acme"))
    assert set_aside(lake) == COUNTED == sorted((*rule, visits) for rule, visits in summary.excluded.items())


def test_live_visits_are_counted_by_rule(lake):
    exclude(lake)
    intake = LiveIngest(lake, now=lambda: NOW)
    intake.land([Submission("acme", [line.encode() for line in lines_of(OWN)])])
    assert set_aside(lake) == COUNTED


def test_visits_of_a_log_imported_again_are_not_counted_again(lake, importer, own_log):
    for _ in range(2):
        importer.run(own_log, Options("acme"))
    assert set_aside(lake) == COUNTED


def test_a_dry_run_reports_but_does_not_record_counts_by_rule(lake, importer, own_log):
    summary = importer.run(own_log, Options("acme"), dry_run=True)
    assert (summary.excluded.total(), {visits for *_, visits in set_aside(lake)}) == (8, {0})


# History


def old_visits(lake, requests):
    """Land the requests' visits as version 1.0.0 did."""
    rows = [
        visit(
            path=request["path"].partition("?")[0], user_agent=request.get("user_agent", CHROME), rules_version="old",
            status=request.get("status", 200), is_malicious=request["path"].startswith("/.env"), short_code=None,
            visited_at=datetime(2026, 3, 1, 10, 0, number),
        )
        for number, (request, _) in enumerate(requests)
    ]  # fmt: skip
    land(lake, "acme", rows)


@pytest.mark.parametrize("requests", [REQUESTS[:11], [row for row in OWN if "ip" not in row[0]]], ids=["files", "own"])
def test_reclassifying_marks_history_like_new_visits(lake, requests):
    exclude(lake)
    old_visits(lake, requests)
    Reclassifier(lake).run(["acme"])
    assert landed(lake, requests) == [reason for _, reason in requests]


def test_reclassifying_removes_marks_from_removed_rules(lake):
    exclude(lake)
    old_visits(lake, OWN[3:5])
    Reclassifier(lake).run(["acme"])
    lake.manifest.exclusions.remove("acme", checked_exclusion("agent", "UptimeKuma/"))
    Reclassifier(lake).run(["acme"])
    assert landed(lake, OWN[3:5]) == ["", ""]


def test_reclassifying_keeps_marks_from_address_rules(lake):
    bits = BITS["own_address"] | BITS["page_part"]
    land(lake, "acme", [visit(path="/a", signals=bits, rules_version="old")])
    Reclassifier(lake).run(["acme"])
    assert [row["signals"] for row in rows_of(lake)] == [bits | BITS["file"]]


@pytest.mark.parametrize("bits", [0, BITS["file"]])
def test_reclassifying_leaves_marks_on_script_requests_unchanged(lake, bits):
    bits |= BITS["accepts_no_page"]
    land(lake, "acme", [visit(path="/a", signals=bits, rules_version="old")])
    Reclassifier(lake).run(["acme"])
    assert [row["signals"] for row in rows_of(lake)] == [bits]


def test_reclassifying_reports_added_and_removed_marks(lake):
    exclude(lake)
    land(lake, "acme", [
        visit(path="/a.css", short_code=None, rules_version="old"), visit(path="/admin", rules_version="old"),
        visit(path="/b", rules_version="old"), visit(path="/c", signals=BITS["own_rule"], rules_version="old"),
    ])  # fmt: skip
    result = Reclassifier(lake).run(["acme"], dry_run=True)
    assert result.reasons == {
        ReasonChange("file", True): 1,
        ReasonChange("own_rule", True): 1,
        ReasonChange("own_rule", False): 1,
    }


def test_reclassifying_again_rewrites_nothing(lake):
    exclude(lake)
    old_visits(lake, OWN)
    Reclassifier(lake).run(["acme"])
    assert Reclassifier(lake).run(["acme"]).rewritten == 0


def test_a_new_rule_requires_reclassification(lake):
    old_visits(lake, OWN)
    Reclassifier(lake).run(["acme"])
    exclude(lake)
    assert Reclassifier(lake).run(["acme"]).rewritten == len(OWN)


def test_an_address_rule_requires_no_reclassification(lake):
    old_visits(lake, OWN)
    Reclassifier(lake).run(["acme"])
    lake.manifest.exclusions.add("acme", checked_exclusion("address", "203.0.113.7"))
    assert Reclassifier(lake).run(["acme"]).rewritten == 0


def test_rules_survive_reopening_a_lake(lake):
    exclude(lake)
    lake.manifest.exclusions.switch_files("acme", aside=True)
    reopened = Lake(lake.root)
    assert [tuple(rule) for rule in reopened.manifest.exclusions.rules("acme")] == sorted(
        tuple(checked_exclusion(*rule)) for rule in EXCLUDED
    )
    assert reopened.manifest.exclusions.are_files_aside("acme")
    reopened.manifest.close()

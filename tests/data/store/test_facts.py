"""The manifest records the request facts of each day, and keeps them when tasks rewrite the files."""

import json
from datetime import UTC, date, datetime

import pytest

from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.signals import BITS, HEADERS, NETWORKS
from data.store.pending import flush_all
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from tests.support.lakes import rebuilt
from tests.support.log_lines import lines
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
MARCH = [datetime(2026, 3, day, 12) for day in range(1, 10)]
SENT, ABSENT, HTTPS, PLAIN = (BITS[name] for name in ("fetch_sent", "language_absent", "https", "plain_http"))


def facts(lake):
    """Return the facts of each day in March, by the day's number."""
    found = lake.manifest.files.facts_by_day("acme", date(2026, 3, 1), date(2026, 3, 31))
    return {day.day: bits for day, bits in found.items()}


def caddy(at, headers):
    """Return a line of a Caddy log."""
    request = {"remote_ip": "198.51.100.7", "method": "GET", "host": "go.example", "uri": "/", "headers": headers}
    told = {"ts": at.replace(tzinfo=UTC).timestamp(), "logger": "http.log.access", "status": 200, "request": request}
    return f"{json.dumps(told)}\n"


@pytest.fixture
def known(lake):
    """A lake with three days: one without facts, one with facts in two of three files, and one with facts in one
    file.
    """
    land(lake, "acme", [visit(visited_at=MARCH[1], visitor=2, signals=SENT | BITS["attacked"])])
    land(lake, "acme", [visit(visited_at=MARCH[1], visitor=2, signals=PLAIN)])
    land(lake, "acme", [visit(visited_at=at, visitor=1) for at in MARCH[:2]])
    land(lake, "acme", [visit(visited_at=MARCH[2], signals=bits) for bits in (ABSENT, HTTPS, None)])
    return lake


KNOWN = {1: NETWORKS, 2: SENT | PLAIN | NETWORKS, 3: ABSENT | HTTPS | NETWORKS}


def test_a_day_has_the_facts_of_all_its_visits(known):
    assert facts(known) == KNOWN


def test_an_import_of_a_log_with_headers_records_them(lake, load):
    fetch = {"Sec-Fetch-Mode": ["navigate"], "Sec-Fetch-Dest": ["document"], "Sec-Fetch-Site": ["none"]}
    load(caddy(MARCH[3], {"Accept-Language": ["de"]}) + caddy(MARCH[4], fetch))
    assert {day: bool(bits & HEADERS) for day, bits in facts(lake).items()} == {4: True, 5: True}
    assert facts(lake)[4] & BITS["language_sent"]
    assert facts(lake)[5] & SENT


def test_an_import_of_a_log_without_headers_records_none(lake, load):
    load(lines("/a", "/b"))
    found = lake.manifest.files.facts_by_day("acme", date.min, date.max)
    assert found == {date(2015, 5, 17): NETWORKS}


def test_headers_of_a_reported_visit_give_facts(lake):
    live = LiveIngest(lake, now=lambda: NOW)
    reported = {"time": "2026-03-09T11:00:00Z", "url": "https://go.example/a", "accept_language": ""}
    live.land([Submission("acme", [json.dumps(reported).encode()])])
    flush_all(lake)
    assert facts(lake) == {9: ABSENT | NETWORKS}


def test_a_merged_day_keeps_its_facts(known):
    Compactor(known, lambda: NOW).run()
    assert len(known.manifest.files.live("acme")) == 3
    assert facts(known) == KNOWN


def test_a_reclassified_day_keeps_its_facts(known):
    assert Reclassifier(known, lambda: NOW).run(["acme"]).visits
    assert facts(known) == KNOWN


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_rebuilt_manifest_has_the_facts_of_each_day(known, is_lost):
    Compactor(known, lambda: NOW).run()
    land(known, "acme", [visit(visited_at=MARCH[5], signals=SENT)])
    with rebuilt(known, is_lost) as again:
        assert facts(again) == KNOWN | {6: SENT | NETWORKS}


def test_erased_days_disappear_and_others_keep_their_facts(known):
    Eraser(known, lambda: NOW).run("acme", Criteria(visitor=1))
    assert facts(known) == {2: KNOWN[2], 3: KNOWN[3]}


def test_days_beyond_the_retention_period_disappear(known):
    apply_retention(known, 6, NOW)
    assert facts(known) == {3: KNOWN[3]}

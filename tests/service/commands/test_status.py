"""`traffic status`: a table for people, JSON for programs, the same numbers in both."""

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest

from data.ingest.visitor_ids import daily_salts
from data.maintenance import erasure
from data.store import pending
from data.store.manifest import Replacement
from service.commands.status import _age
from tests.service.commands.runs import refused
from tests.support.tables import examples
from tests.support.visits import land, packed, visit


@pytest.fixture
def status(traffic, lake):
    """Runs `traffic status` over the lake of a test."""
    return lambda *flags: traffic("status", *flags, "--lake", lake.root)


@pytest.fixture
def filled(lake):
    """A lake with two organizations, of which one has visits that wait, and a dead file."""
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day, 12, 30, 5)) for day in (4, 5, 5)] * 500)
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4, 9))])
    land(lake, "other", [visit(visited_at=datetime(2026, 2, 1)), visit(visited_at=datetime(2026, 3, 9))])
    dead = lake.manifest.live_files("other", date(2026, 3, 1))
    lake.manifest.replace_files(Replacement(dead, datetime.now(UTC) + timedelta(1), changes_answers=True), list)
    table = packed([visit()] * 7)
    pending.enqueue(lake.manifest, {"acme": table}, datetime.now(UTC) - timedelta(seconds=190))
    daily_salts(lake.salts, [date(2026, 3, 9)], datetime.now(UTC) - timedelta(hours=30, minutes=5))
    return lake


def size_of(lake, organization):
    return sum(file.size for file in lake.manifest.live_files(organization))


def test_the_table_is_for_people(filled, status):
    code, out, err = status()
    assert (code, err) == (0, "")
    first, *rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    assert first == [
        "organization",
        "files",
        "visits",
        "bytes",
        "first visit",
        "last visit",
        "open",
        "unmerged",
        "unjudged",
        "pending",
    ]
    told = {name: cells for name, *cells in rows}
    times = "2026-03-04T09:00:00Z", "2026-03-05T12:30:05Z"
    assert [*told["acme"][:2], *told["acme"][3:]] == ["3", "1,501", *times, "0", "1", "2", "7 (3 minutes ago)"]
    assert told["(total)"][:2] == ["4", "1,502"]
    assert told["to be deleted"][0].startswith("1 file (")
    assert told["oldest salt"] == ["30 hours ago"]
    assert told["agents refreshed"] == ["never"]
    assert told["lake"] == [str(filled.root)]


def test_json_is_for_programs(filled, status):
    code, out, err = status("--format", "json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["organizations"] == [
        {
            "organization": "acme",
            "files": 3,
            "visits": 1501,
            "bytes": size_of(filled, "acme"),
            "first_day": "2026-03-04",
            "last_day": "2026-03-05",
            "first_visit_at": "2026-03-04T09:00:00Z",
            "last_visit_at": "2026-03-05T12:30:05Z",
            "open_files": 0,
            "unmerged_days": 1,
            "unjudged_days": 2,
            "pending_visits": 7,
            "oldest_pending_at": told["total"]["oldest_pending_at"],
        },
        {
            "organization": "other",
            "files": 1,
            "visits": 1,
            "bytes": size_of(filled, "other"),
            "first_day": "2026-02-01",
            "last_day": "2026-02-01",
            "first_visit_at": "2026-02-01T00:00:00Z",
            "last_visit_at": "2026-02-01T00:00:00Z",
            "open_files": 0,
            "unmerged_days": 0,
            "unjudged_days": 1,
            "pending_visits": 0,
            "oldest_pending_at": None,
        },
    ]
    times = [told["total"]["oldest_pending_at"], told["oldest_salt_at"], told["oldest_check_at"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) for time in times)
    assert told["agents_refreshed_at"] is None
    assert (told["lake"], told["dead_files"], told["total"]["files"]) == (str(filled.root), 1, 4)
    assert "organization" not in told["total"]


def test_an_empty_lake_has_a_status(lake, status):
    assert status()[0] == 0
    assert json.loads(status("--format", "json")[1])["organizations"] == []


def test_an_unknown_format_is_refused(status):
    assert "csv" in refused(status("--format", "csv"))


@examples("seconds", "age")
def test_an_age_is_told_in_a_unit_that_fits(seconds, age):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert _age(now - timedelta(seconds=seconds), now) == age


@pytest.fixture(autouse=True)
def grace(monkeypatch):
    """No wait."""
    monkeypatch.setattr(erasure, "GRACE", timedelta(0))

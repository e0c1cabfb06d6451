"""`traffic status`: a table for people, JSON for programs, the same numbers in both."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from data.ingest.visitor_ids import daily_salts
from data.store import pending
from data.store.manifest import Replacement
from service.commands.status import _age
from tests.support.lakes import files_of
from tests.support.tables import examples
from tests.support.visits import land, packed, visit


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


def test_a_status_is_a_table_for_people_and_json_for_programs(filled, traffic):
    run = traffic("status")
    assert (run.code, run.err) == (0, "")
    head, *rows = [re.split(r"\s{2,}", line.strip()) for line in run.out.splitlines()]
    assert " ".join(head) == ("organization files visits bytes first visit last visit open unmerged unjudged pending")
    told = {name: cells for name, *cells in rows}
    times = "2026-03-04T09:00:00Z", "2026-03-05T12:30:05Z"
    assert [*told["acme"][:2], *told["acme"][3:]] == ["3", "1,501", *times, "0", "1", "2", "7 (3 minutes ago)"]
    assert told["(total)"][:2] == ["4", "1,502"]
    assert told["to be deleted"][0].startswith("1 file (")
    assert (told["oldest salt"], told["agents refreshed"]) == (["30 hours ago"], ["never"])
    assert told["lake"] == [str(filled.root)]
    told = traffic("status", "--format", "json").json
    acme, other = told["organizations"]
    assert [acme.pop("bytes"), other.pop("bytes")] == [
        sum(file.size for file in files_of(filled, name)) for name in ("acme", "other")
    ]
    assert acme == {
        "organization": "acme", "files": 3, "visits": 1501, "first_day": "2026-03-04", "last_day": "2026-03-05",
        "first_visit_at": times[0], "last_visit_at": times[1], "open_files": 0, "unmerged_days": 1, "unjudged_days": 2,
        "pending_visits": 7, "oldest_pending_at": told["total"]["oldest_pending_at"],
    }  # fmt: skip
    midnight = "2026-02-01T00:00:00Z"
    assert other == {
        "organization": "other", "files": 1, "visits": 1, "first_day": "2026-02-01", "last_day": "2026-02-01",
        "first_visit_at": midnight, "last_visit_at": midnight, "open_files": 0, "unmerged_days": 0, "unjudged_days": 1,
        "pending_visits": 0, "oldest_pending_at": None,
    }  # fmt: skip
    times = [told["total"]["oldest_pending_at"], told["oldest_salt_at"], told["oldest_check_at"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) for time in times)
    assert (told["agents_refreshed_at"], told["dead_files"], told["total"]["files"]) == (None, 1, 4)
    assert "organization" not in told["total"]


@examples("seconds", "age")
def test_an_age_is_told_in_a_unit_that_fits(seconds, age):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert _age(now - timedelta(seconds=seconds), now) == age

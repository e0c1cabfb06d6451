"""`traffic retain`: what is left, and how long it waits; what it prints is in transcripts/retain.txt."""

import time
from datetime import UTC, datetime, timedelta

from data.maintenance import erasure as erasing
from data.maintenance import retention as retaining
from tests.support.visits import land, visit

DAYS = {"start_date": "2026-03-02", "end_date": "2026-03-08"}


def test_it_waits_until_no_query_reads_the_files_and_keeps_a_record_of_what_was_removed(lake, traffic, monkeypatch):
    for name, ages in (("acme", (40, 40, 39, 2)), ("other", (400, 0)), ("young", (1,))):
        moments = [datetime.now(UTC).replace(tzinfo=None) - timedelta(days=age) for age in ages]
        land(lake, name, [visit(visited_at=moment) for moment in moments])
    for module in (erasing, retaining):
        monkeypatch.setattr(module, "GRACE", timedelta(seconds=15))
    old, slept = lake.root / lake.manifest.live_files("other")[0].path, []

    def sleep(seconds):
        slept.append(seconds)
        assert old.exists()

    monkeypatch.setattr(time, "sleep", sleep)
    retain = ("retain", "--yes", "--days")
    assert "in 15 s" in traffic(*retain, "30").err
    assert (sum(slept), old.exists()) == (15, False)
    del slept[:]
    left = {name: sum(file.visits for file in lake.manifest.live_files(name)) for name in ("acme", "other", "young")}
    assert left == {"acme": 1, "other": 1, "young": 1}
    assert len([*lake.root.glob("visits/organization=[!_]*/*/*.parquet")]) == 3 + 2  # with visits; records of removals
    assert (lake.root / "manifest.sqlite-wal").stat().st_size == 0
    traffic(*retain, "30")
    traffic(*retain, "1", "--dry-run")
    assert slept == []


def test_a_cached_answer_is_not_given_once_its_days_are_too_old(lake, client):
    land(lake, "acme", [visit()] * 3)

    def visits():
        return client.get("/analytics/traffic-overview", params=DAYS).json()["total_visits"]

    assert visits() == visits() == 3
    retaining.apply_retention(lake, 30, datetime(2026, 4, 20, tzinfo=UTC))
    assert visits() == 0

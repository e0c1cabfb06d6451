"""`traffic retain`: what is left, and how long it waits; what it prints is in transcripts/retain.txt."""

import time
from datetime import UTC, datetime, timedelta

from data.maintenance import erasure as erasing
from data.maintenance import retention as retaining
from tests.support.visits import land, visit


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

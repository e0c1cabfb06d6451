"""The memory of what rewrites and counts visits: it grows with the visits of a day where spilling cannot replace it."""

from datetime import UTC, date, datetime, timedelta

import pytest

from data.errors import LakeDamaged
from data.maintenance import rewriting
from data.maintenance.compaction import Compactor
from data.maintenance.erasure import Criteria, Eraser
from data.maintenance.reclassification import Reclassifier
from queries import RollupBuilder
from tests.visits import land, visit

DAY, NOW = date(2026, 3, 5), datetime(2026, 3, 15, 12, tzinfo=UTC)
VISITS = 2_000
"""In each of two files of the day."""

REWRITES = {
    "compaction": lambda lake: Compactor(lake, lambda: NOW).run().partitions,
    "rollups": lambda lake: RollupBuilder(lake, lambda: NOW).run(),
    "erasure": lambda lake: Eraser(lake, lambda: NOW).run("acme", Criteria(short_code="a1")).partitions,
    "reclassification": lambda lake: Reclassifier(lake, lambda: NOW).run(["acme"]).partitions,
}


@pytest.fixture
def crowded(lake):
    """A lake with a day of two files, whose visits were classified by older rules."""
    for number in range(2):
        at = datetime(2026, 3, 5, number, tzinfo=UTC)
        rows = [
            visit(short_code=f"a{n % 7}", visitor=n, visited_at=at + timedelta(seconds=n), rules_version="older")
            for n in range(VISITS)
        ]
        land(lake, "acme", rows)
    return lake


@pytest.mark.parametrize("name", [name for name in REWRITES if name != "reclassification"])  # takes a file in parts
def test_a_day_of_more_visits_has_more_memory(crowded, monkeypatch, name):
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 1 << 20)
    monkeypatch.setattr(rewriting, "MEMORY_PER_VISIT", (256 << 20) // VISITS)
    assert REWRITES[name](crowded) == 1


@pytest.mark.parametrize("name", REWRITES)
def test_a_day_for_which_memory_does_not_suffice_stays_as_it_is(crowded, monkeypatch, name):
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 1 << 20)
    monkeypatch.setattr(rewriting, "MEMORY_PER_VISIT", 1)
    before = [file.path for file in crowded.manifest.live_files("acme")]
    with pytest.raises(LakeDamaged, match="Out of Memory"):
        REWRITES[name](crowded)
    assert [file.path for file in crowded.manifest.live_files("acme")] == before

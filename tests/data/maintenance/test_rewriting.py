"""The memory of what rewrites and counts visits: it grows with the visits of a day where spilling cannot replace it."""

import random
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from data.errors import LakeDamaged
from data.maintenance import compaction, erasure, reclassification, rewriting
from data.maintenance.compaction import Compactor
from data.maintenance.erasure import Criteria, Eraser
from data.maintenance.reclassification import Reclassifier
from data.store.lake import Lake
from data.visits import VISITS as COLUMNS
from queries import RollupBuilder
from tests.support.lakes import opened
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
VISITS = 2_000
"""In each of two files of the day."""

REWRITES = {
    "compaction": lambda lake: Compactor(lake, lambda: NOW).run().partitions,
    "rollups": lambda lake: RollupBuilder(lake, lambda: NOW).run(),
    "erasure": lambda lake: Eraser(lake, lambda: NOW).run("acme", Criteria(short_code="a1")).partitions,
    "reclassification": lambda lake: Reclassifier(lake, lambda: NOW).run(["acme"]).partitions,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Closed lakes with a day of two files, to be copied.

    The visits of one were classified by older rules. Those of the other have a kilobyte of random text each; some are
    of no link, and some of one whose code is larger than every character.
    """
    draw, codes = random.Random(1), [None, "a", "b", "\U0010ffff", "\U0010ffffz"]
    kinds = {
        "crowded": lambda n, _: {"short_code": f"a{n % 7}", "visitor": n, "rules_version": "older", "second": n},
        "long texts": lambda n, number: {
            "short_code": codes[n % len(codes)], "user_agent": draw.randbytes(512).hex(), "visitor": 2 * n + number,
            "second": draw.randrange(7200),
        },
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("made")
    for name, columns in kinds.items():
        with closing((lake := Lake(folder / name, create=True)).manifest):
            for number in range(2):
                rows = [columns(n, number) for n in range(VISITS)]
                at = datetime(2026, 3, 5, number)
                land(lake, "acme", [visit(visited_at=at + timedelta(seconds=row.pop("second")), **row) for row in rows])
    return folder


@pytest.fixture
def crowded(made, tmp_path):
    with opened(shutil.copytree(made / "crowded", tmp_path / "lake")) as lake:
        yield lake


@pytest.mark.parametrize("name", [name for name in REWRITES if name != "reclassification"])  # takes a file in parts
def test_a_day_of_more_visits_has_more_memory(crowded, monkeypatch, name):
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 3 << 20)
    monkeypatch.setattr(rewriting, "MEMORY_PER_VISIT", (256 << 20) // VISITS)
    assert REWRITES[name](crowded) == 1


@pytest.mark.parametrize("name", REWRITES)
def test_a_day_for_which_memory_does_not_suffice_stays_as_it_is(crowded, monkeypatch, name):
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 3 << 20)
    monkeypatch.setattr(rewriting, "MEMORY_PER_VISIT", 1)
    before = [file.path for file in crowded.manifest.live_files("acme")]
    with pytest.raises(LakeDamaged, match="Out of Memory"):
        REWRITES[name](crowded)
    assert [file.path for file in crowded.manifest.live_files("acme")] == before


@pytest.fixture
def long_texts(made, tmp_path):
    with opened(shutil.copytree(made / "long texts", tmp_path / "lake")) as lake:
        yield lake


def stored(lake):
    """The visits of the day as they lie in its files."""
    files = [str(lake.root / file.path) for file in lake.manifest.live_files("acme")]
    return duckdb.execute("SELECT * FROM read_parquet($1, hive_partitioning := FALSE)", [files]).fetchall()


def by_key(visits):
    code, at = COLUMNS.names.index("short_code"), COLUMNS.names.index("visited_at")
    return sorted(visits, key=lambda row: (row[code] is None, row[code] or "", row[at]))


def _unjudged(row):
    """A row as it landed."""
    return tuple(None if name == "signals" else value for name, value in zip(COLUMNS.names, row, strict=True))


def test_visits_with_long_texts_are_merged_in_ranges_if_memory_does_not_suffice(long_texts, monkeypatch):
    """Anybody on the internet can send them, and without this, nothing of that day would ever be merged."""
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 14 << 20)
    before = stored(long_texts)
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "_RANGES", (1,))
        with pytest.raises(LakeDamaged, match="Out of Memory"):
            Compactor(long_texts, lambda: NOW).run()
    assert Compactor(long_texts, lambda: NOW).run().files_after == 1
    after = stored(long_texts)
    assert after == by_key(after)
    assert sorted(map(_unjudged, after), key=str) == sorted(before, key=str)


@pytest.mark.parametrize(("visits", "ranges"), [(0, 1), (66_000, 1), (66_001, 2), (200_000, 4), (20_000_000, 8)])
def test_many_visits_are_merged_in_ranges(lake, monkeypatch, visits, ranges):
    for number in range(2):
        land(lake, "acme", [visit(visitor=number)])
    monkeypatch.setattr(compaction, "RANGE_VISITS", 2 * compaction.RANGE_VISITS / (visits or 1))
    tried, merged = [], compaction._merged
    monkeypatch.setattr(compaction, "_merged", lambda *asked: tried.append(asked[2]) or merged(*asked))
    assert Compactor(lake, lambda: NOW).run().files_after == 1
    assert tried == [ranges]
    assert len(stored(lake)) == 2


def test_visits_with_long_texts_are_erased_from_if_memory_does_not_suffice(long_texts, monkeypatch):
    Compactor(long_texts, lambda: NOW).run()
    visitor, before = COLUMNS.names.index("visitor"), stored(long_texts)
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 15 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "ROW_GROUP", 2 * VISITS)
        with pytest.raises(LakeDamaged, match="Out of Memory"):
            Eraser(long_texts, lambda: NOW).run("acme", Criteria(visitor=1))
    monkeypatch.setattr(erasure, "ROW_GROUP", 200)
    assert Eraser(long_texts, lambda: NOW).run("acme", Criteria(visitor=1)).visits == 1
    assert stored(long_texts) == [row for row in before if row[visitor] != 1]


def test_visits_with_long_texts_are_reclassified_if_memory_does_not_suffice(long_texts, monkeypatch):
    Compactor(long_texts, lambda: NOW).run()
    before = stored(long_texts)
    expected = Reclassifier(long_texts, lambda: NOW).run(["acme"], dry_run=True)
    assert expected.changed == 2 * VISITS
    monkeypatch.setattr(rewriting, "MIN_MEMORY", 18 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(reclassification, "ROW_GROUP", 2 * VISITS)
        with pytest.raises(LakeDamaged, match="Out of Memory"):
            Reclassifier(long_texts, lambda: NOW).run(["acme"])
    monkeypatch.setattr(reclassification, "ROW_GROUP", 500)
    assert Reclassifier(long_texts, lambda: NOW).run(["acme"], dry_run=True) == expected
    assert Reclassifier(long_texts, lambda: NOW).run(["acme"]) == expected
    keys = [COLUMNS.names.index(name) for name in ("short_code", "visited_at", "visitor", "user_agent")]
    assert [[row[key] for key in keys] for row in stored(long_texts)] == [[row[key] for key in keys] for row in before]
    assert Reclassifier(long_texts, lambda: NOW).run(["acme"]).rewritten == 0

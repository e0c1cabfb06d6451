"""Unknown files are kept as evidence (P1), moved after a day, and covered by erasures; leftovers are deleted."""

import os
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from data import LakeDamaged
from data.recovery.verification import verify_lake
from data.store import unknown
from data.store.footers import read_visit_file
from data.store.unknown import clear_unknown, discard_unknown, unknown_files
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser, delete_files
from tests.support.lakes import failing_at, kill_at_commit
from tests.support.manifests import database_of
from tests.support.visits import land, visit

FAR = timedelta(days=36_500)


def unregister(lake):
    """Remove the newest file from the manifest, which is then like an older manifest; return the file's path."""
    (path,) = database_of(lake.manifest).rows("SELECT path FROM files ORDER BY id DESC LIMIT 1")[0]
    with database_of(lake.manifest).transaction() as db:
        db.execute("DELETE FROM files WHERE path = ?", [path])
    return lake.root / path


def aged(path, age=timedelta(days=1, minutes=1)):
    moment = path.stat().st_mtime - age.total_seconds()
    os.utime(path, (moment, moment))


def rows(path):
    return [row["path"] for row in pq.ParquetFile(path).read().to_pylist()]


def test_an_unknown_file_is_moved_when_it_is_a_day_old(lake, caplog):
    land(lake, "acme", [visit()])
    path = unregister(lake)
    content = path.read_bytes()
    ahead = Compactor(lake, lambda: datetime.now(UTC) + FAR)
    assert ahead.sweep() == 0
    assert path.exists()
    aged(path)
    assert ahead.sweep() == 0
    moved = lake.root / "unknown" / path.relative_to(lake.root / "visits")
    assert (path.exists(), moved.read_bytes()) == (False, content)
    assert str(moved) in caplog.text
    assert ahead.sweep() == 0
    assert moved.read_bytes() == content
    assert (verify_lake(lake).unknown, verify_lake(lake).findings, verify_lake(lake, "other").unknown) == (1, [], 0)


def test_a_file_with_a_time_in_the_future_counts_as_old(lake):
    """The file was written while the clock was ahead."""
    for ahead in (timedelta(minutes=1), timedelta(minutes=10)):
        land(lake, "acme", [visit()])
        path = unregister(lake)
        aged(path, -ahead)
        Compactor(lake).sweep()
        assert path.exists() == (ahead == timedelta(minutes=1))
    assert len(unknown_files(lake)) == 2


@pytest.mark.parametrize(
    "work", [clear_unknown, lambda lake: discard_unknown(lake, unknown.unknown_files(lake))], ids=["clear", "discard"]
)
def test_a_file_registered_after_being_listed_stays(lake, monkeypatch, work):
    land(lake, "acme", [visit()])
    row = database_of(lake.manifest).rows("SELECT * FROM files")[0]
    path = unregister(lake)
    aged(path)
    before, listed = path.read_bytes(), unknown_files(lake)

    def listing(*_):
        with database_of(lake.manifest).transaction() as db:
            db.execute(f"INSERT INTO files VALUES ({', '.join('?' * len(row))})", row)
        return listed

    monkeypatch.setattr(unknown, "unknown_files", listing)
    work(lake)
    assert path.read_bytes() == before


@pytest.fixture
def left(lake):
    """The file that a merge of two files had moved into place when the merge was killed."""
    for path in ("/a", "/b"):
        land(lake, "acme", [visit(path=path)])
    before = set(lake.root.glob("visits/organization=acme/*/*"))
    kill_at_commit(Compactor(lake).run, "data.store.rewriting", "data.manifest.manifest")
    (left,) = set(lake.root.glob("visits/organization=acme/*/*")) - before
    assert sorted(rows(left)) == ["/a", "/b"]
    return left


@pytest.mark.parametrize("lost", ["nothing", "a file", "a row"])
def test_files_from_killed_merges_are_swept_if_sources_are_live(lake, left, lost):
    if lost == "a row":
        unregister(lake)
    elif lost == "a file":
        (lake.root / lake.manifest.files.live("acme")[0].path).unlink()
    swept = Compactor(lake).sweep()
    assert (swept == 1, left.exists()) == (lost == "nothing", lost != "nothing")
    assert sum(file.visits for file in lake.manifest.files.live("acme")) == (1 if lost == "a row" else 2)


@pytest.mark.parametrize("is_moved", [False, True])
def test_an_erasure_deletes_only_its_visits_from_unknown_files(lake, is_moved):
    land(lake, "acme", [visit(path="/gone", short_code="gone"), visit(path="/kept", short_code="kept")])
    path = unregister(lake)
    footer = read_visit_file(path).footer
    if is_moved:
        aged(path)
        Compactor(lake).sweep()
    (path,) = unknown_files(lake)
    eraser, gone = Eraser(lake), Criteria(short_code="gone")
    assert eraser.run("acme", gone, dry_run=True).unknown_visits == 1
    with failing_at("data.store.landing", "move_durably"):
        eraser.run("acme", gone)
    assert (rows(path), [*lake.staging.iterdir()]) == (["/gone", "/kept"], [])
    erased = eraser.run("acme", gone)
    delete_files(lake, erased.dead, erased.ended_at)
    assert (erased.visits, erased.unknown_visits) == (0, 1)
    assert (rows(path), read_visit_file(path).footer) == (["/kept"], footer)
    assert eraser.run("acme", Criteria()).unknown_visits == 1
    assert (rows(path), read_visit_file(path).footer) == ([], footer)


def test_an_erasure_reports_an_unreadable_unknown_file(lake):
    land(lake, "acme", [visit()])
    path = unregister(lake)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LakeDamaged, match=f"{path.name} cannot be read"):
        Eraser(lake).run("acme", Criteria(short_code="gone"))
    Eraser(lake).run("acme", Criteria())
    assert not path.exists()

"""After an older manifest has been restored, unknown files are never overwritten (P1), and reads still work."""

import logging
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from data import OutdatedManifest
from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.manifest.generation import GenerationCopy, SharedDatabase
from data.recovery.backup import back_up
from data.recovery.rebuild import Rebuild
from data.recovery.verification import verify_lake
from data.store.pending import enqueue, flush_all
from data.store.status import status_of
from data.store.unknown import clear_unknown, discard_unknown, expire_unknown, unknown_files
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from queries import RollupBuilder
from tests.faults.lakes import log
from tests.support.lakes import kept_manifest, opened, paths, put_back, rebuilt
from tests.support.manifests import database_of
from tests.support.visits import land, links, packed, visit

NOW = datetime(2026, 1, 9, tzinfo=UTC)
MOMENT = datetime(2026, 1, 2, 10)


def numbers(root):
    """Return the generation number of a manifest and that of its copy."""
    with opened(root) as lake:
        return database_of(lake.manifest).rows("SELECT number FROM generation")[0][0], copy_of(root)


def copy_of(root):
    return GenerationCopy(root).number()


def add_pending(lake, path="/waiting"):
    enqueue(lake.manifest, [("acme", packed([visit(visited_at=MOMENT, path=path)]))], NOW)


@pytest.fixture
def root(lake):
    """A closed lake with a restored older manifest that lacks the second of the lake's visits, and its link."""
    land(lake, "acme", [visit(visited_at=MOMENT, path="/known")])
    older = kept_manifest(lake.root)
    land(lake, "acme", [visit(visited_at=MOMENT, path="/unknown")])
    links(lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example"}])
    lake.manifest.close()
    put_back(older, lake.root)
    return lake.root


def test_only_changes_raise_the_generation_and_its_copy(lake):
    land(lake, "acme", [visit()])
    assert numbers(lake.root) == (1, 1)
    add_pending(lake)
    flush_all(lake)
    links(lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example"}])
    assert numbers(lake.root) == (4, 4)
    with database_of(lake.manifest).transaction():
        pass
    with pytest.raises(sqlite3.OperationalError), database_of(lake.manifest).transaction() as db:
        db.executescript("DELETE FROM files; NONSENSE")
    assert numbers(lake.root) == (4, 4)
    assert lake.manifest.problem == ""


WRITERS = {
    "import": lambda lake, folder: Importer(lake).run(folder / "new.log", Options("acme")),
    "live visits": lambda lake, _: LiveIngest(lake).land([Submission("acme", [b'{"url": "/a"}'])]),
    "flush": lambda lake, _: flush_all(lake),
    "links": lambda lake, _: links(lake, "acme", [{"short_code": "a", "target_url": "https://shop.example"}]),
    "compact": lambda lake, _: Compactor(lake).run(),
    "rollups": lambda lake, _: RollupBuilder(lake).run(),
    "sweep": lambda lake, _: clear_unknown(lake),
    "reclassify": lambda lake, _: Reclassifier(lake).run(["acme"]),
    "erase": lambda lake, _: Eraser(lake).run("acme", Criteria(short_code="sale")),
    "retain": lambda lake, _: apply_retention(lake, 1, NOW),
    "expire": lambda lake, _: expire_unknown(lake, timedelta(0), NOW, dry_run=False),
    "discard": lambda lake, _: discard_unknown(lake, unknown_files(lake)),
    "backup": lambda lake, folder: back_up(lake, folder / "backup"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_refuses_an_older_manifest(lake, tmp_path, writer):
    (tmp_path / "new.log").write_text(log("new", 9))
    land(lake, "acme", [visit(visited_at=MOMENT, path=path) for path in ("/a", "/b")])
    land(lake, "acme", [visit(visited_at=MOMENT, path="/c")])
    add_pending(lake)
    older = kept_manifest(lake.root)
    land(lake, "acme", [visit(visited_at=MOMENT, path="/unknown")])
    lake.manifest.close()
    put_back(older, lake.root)
    with opened(lake.root) as again:
        before = {path: path.read_bytes() for path in lake.root.glob("visits/*/*/*.parquet")}
        with pytest.raises(OutdatedManifest, match=r"change 3 of 4\), .* until all programs .*`traffic rebuild`"):
            WRITERS[writer](again, tmp_path)
        assert {path: path.read_bytes() for path in lake.root.glob("visits/*/*/*.parquet")} == before
        assert paths(again) == {"/a": 1, "/b": 1, "/c": 1}
        assert again.manifest.pending.backlog().visits == 1
    assert not (tmp_path / "backup").exists()


def test_an_older_manifest_is_readable_and_can_be_rebuilt(root):
    for path in root.rglob("*.parquet"):
        os.utime(path)  # forces hashing again
        path.chmod(0o600)
    with opened(root) as lake:
        problem = lake.manifest.problem
        assert problem.startswith(f"{root}/manifest.sqlite is older than the files in the lake (change 1 of 3)")
        assert paths(lake) == {"/known": 1}
        found = verify_lake(lake)
        assert (found.findings, found.unknown) == ([("manifest.sqlite", problem)], 1)
        assert status_of(lake, NOW).manifest_problem == problem
    Rebuild(root).run()
    assert numbers(root) == (4, 4)
    with opened(root) as lake:
        assert paths(lake) == {"/known": 1, "/unknown": 1}
        assert verify_lake(lake).findings == []
        land(lake, "acme", [visit(visited_at=MOMENT, path="/new")])


@pytest.mark.parametrize(("is_lost", "copied", "now"), [(False, 0, 2), (True, 7, 8)])
def test_a_rebuild_never_lowers_the_generation(lake, is_lost, copied, now):
    land(lake, "acme", [visit()])
    (lake.root / "generation").write_text(f"{copied}\n")
    with rebuilt(lake, is_lost):
        assert numbers(lake.root) == (now, now)


def test_an_older_manifest_with_a_newer_wal_is_detected(lake, tmp_path):
    land(lake, "acme", [visit(visited_at=MOMENT, path="/known")])
    database_of(lake.manifest).rows("PRAGMA wal_checkpoint(TRUNCATE)")
    older = tmp_path / "older.sqlite"
    shutil.copy(lake.root / "manifest.sqlite", older)
    for n in range(40):
        land(lake, "acme", [visit(visited_at=MOMENT, path=f"/{n}")])
    database_of(lake.manifest).rows("PRAGMA wal_checkpoint(TRUNCATE)")
    with database_of(lake.manifest).transaction() as db:  # the only content of the log
        db.execute("INSERT INTO last_runs VALUES ('task', '2026')")
    log = (lake.root / "manifest.sqlite-wal").read_bytes()
    lake.manifest.close()
    put_back(older, lake.root)
    (lake.root / "manifest.sqlite-wal").write_bytes(log)
    with opened(lake.root) as again:
        assert database_of(again.manifest).rows("SELECT number FROM generation") == [(42,)]
        assert "it has 1 files and 1 imports instead of 41 and 41" in again.manifest.problem
        with pytest.raises(OutdatedManifest, match="traffic rebuild"):
            add_pending(again)
    Rebuild(lake.root).run()
    with opened(lake.root) as again:
        assert sum(paths(again).values()) == 41
        add_pending(again)


def test_a_manifest_without_a_generation_counts_as_damaged(lake):
    with closing(sqlite3.connect(lake.root / "manifest.sqlite")) as db:
        db.execute("DELETE FROM generation")
        db.commit()
    assert "manifest.sqlite is damaged; " in lake.manifest.problem


@pytest.mark.parametrize("content", [b"", b"12", b"x\n", b"-7\n", b"9" * 30 + b"\n", b"\xff\n", None])
def test_the_next_change_replaces_an_unreadable_copy(lake, content):
    land(lake, "acme", [visit()])
    (lake.root / "generation").unlink()
    if content is not None:
        (lake.root / "generation").write_bytes(content)
    add_pending(lake)
    assert copy_of(lake.root) == 2


def test_an_unwritable_copy_is_logged_once_and_no_change_fails(lake, caplog):
    (lake.root / "generation").mkdir()
    for _ in range(3):
        add_pending(lake)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "generation cannot be written" in caplog.text
    (lake.root / "generation").rmdir()
    add_pending(lake)
    assert copy_of(lake.root) == 4


def test_the_copy_of_the_generation_never_decreases(lake):
    for number in (9, 8):
        GenerationCopy(lake.root).raise_to(number)
    assert copy_of(lake.root) == 9


def test_changes_during_the_check_do_not_suggest_an_old_manifest(lake, monkeypatch):
    """Another program may change the manifest between the reads of its number and of the copy, in either order."""
    with opened(lake.root) as other:
        for module, name in ((GenerationCopy, "number"), (SharedDatabase, "rows")):
            with monkeypatch.context() as patch:
                read = getattr(module, name)

                def read_before_a_change(self, *arguments, read=read, patch=patch):
                    found = read(self, *arguments)
                    patch.undo()
                    add_pending(other)
                    return found

                patch.setattr(module, name, read_before_a_change)
                lake.manifest.check_current()
                patch.setattr(module, name, read_before_a_change)
                assert lake.manifest.problem == ""
    assert copy_of(lake.root) == 4


@pytest.mark.parametrize(
    ("place", "is_there"),
    [
        ("data.manifest.manifest.insert_files", False),  # its file was moved, but nothing was committed
        ("data.manifest.generation.GenerationCopy.raise_to", True),
        ("pathlib.Path.rename", False),
    ],
)
def test_leftovers_from_a_kill_do_not_block_later_programs(lake, monkeypatch, place, is_there):
    land(lake, "acme", [visit(visited_at=MOMENT, path="/first")])
    lake.manifest.close()
    monkeypatch.setattr(place, lambda *_: os._exit(9))
    pid = os.fork()
    if not pid:
        with opened(lake.root) as killed:
            land(killed, "acme", [visit(visited_at=MOMENT, path="/killed")])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    monkeypatch.undo()
    with opened(lake.root) as again:
        assert again.manifest.problem == ""
        land(again, "acme", [visit(visited_at=MOMENT, path="/next")])
        assert {*paths(again)} == {"/first", "/next"} | ({"/killed"} if is_there else set())
    assert len(set(numbers(lake.root))) == 1


def test_a_restored_backup_does_not_count_as_an_older_manifest(lake, tmp_path):
    land(lake, "acme", [visit(visited_at=MOMENT, path="/known")])
    back_up(lake, tmp_path / "backup")
    land(lake, "acme", [visit(visited_at=MOMENT, path="/later")])
    assert not (tmp_path / "backup" / "generation").exists()
    with opened(tmp_path / "backup") as restored:
        land(restored, "acme", [visit(visited_at=MOMENT, path="/new")])
        assert paths(restored) == {"/known": 1, "/new": 1}
    assert len(set(numbers(tmp_path / "backup"))) == 1

"""A lost, emptied or older manifest loses no visit (P1, P6): after a rebuild, every answer is as before.

After each history, every visit and some answers are compared; with `TRAFFIC_FAULTS=all`, all answers are.
"""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from data import Lake
from data.errors import Conflict, LakeDamaged, NewerVersion, OutdatedManifest
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.manifest.files import READERS_GRACE
from data.recovery.rebuild import Rebuild, locked_for_rebuild
from data.recovery.verification import verify_lake
from data.store.landing import prepare_move
from data.store.pending import enqueue, flush_all
from data.store.unknown import unknown_files
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser, delete_files
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from queries import ENDPOINTS, ENTRIES, RollupBuilder, Scope
from tests.faults.lakes import CHROME, line
from tests.faults.trials import IS_LONG
from tests.support.lakes import flip, kept_manifest, kill_at_commit, opened, paths, put_back, remove_manifest, rows_of
from tests.support.lakes import rebuilt as rebuilt_lake
from tests.support.published import erase
from tests.support.sql import answers as answers_of
from tests.support.visits import land, packed, visit

NOW = datetime(2026, 1, 9, tzinfo=UTC)
MOMENT = datetime(2026, 1, 2, 10)
SCOPES = [Scope(name, date(2026, 1, 1), date(2026, 1, 9)) for name in ("acme", "other")]

ASKED = [name for name in ENDPOINTS if ENTRIES[name].shape != "parts"]
if not IS_LONG:
    ASKED = ["traffic-overview", "top-links", "bot-traffic"]  # from rollups, from links, and from visits only


def answers(root):
    with opened(root) as lake:
        return [answers_of(lake, scope, ASKED) for scope in SCOPES]


def every_visit(lake):
    """Return all visits of each organization with all columns, sorted."""
    return [sorted(rows_of(lake, scope.organization), key=str) for scope in SCOPES]


def rebuilt(root, questions=0, answer=True):
    """Rebuild, answering this many questions; return the result."""
    with locked_for_rebuild(root) as locked:
        rebuild = Rebuild(locked)
        asked = list(rebuild.plan.questions)
        assert len(asked) == questions, asked
        for question in asked:
            rebuild.plan.answer(question, answer)
        return rebuild.run()


LOSSES = {
    "removed": lambda manifest: remove_manifest(manifest.parent),
    "emptied": lambda manifest: manifest.write_bytes(b""),
    "damaged": lambda manifest: manifest.write_bytes(bytes(100) + manifest.read_bytes()[100:]),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A lake with imports for several days, a log that has grown, and live visits. Tests use copies of it."""
    folder = tmp_path_factory.mktemp("filled")
    log = folder / "access.log"
    text = "".join(line(f"/a{n}", 1 + n % 3, agent=CHROME if n % 2 else "GPTBot/1.2") for n in range(12))
    with opened(folder / "lake", create=True) as lake:
        importer = Importer(lake, now=lambda: NOW)
        for grown in (text, text + line("/grown", 2)[:-9], text + line("/grown", 2) + line("/more", 3)):
            log.write_text(grown)
            importer.run(log, Options("acme"))
        for name in ("acme", "other"):
            land(lake, name, [visit(visited_at=MOMENT, path=f"/{name}", short_code="gone", country="DE")] * 2)
        add_pending(lake, "live")
        flush_all(lake)
    return folder


@pytest.fixture
def root(filled, tmp_path):
    return shutil.copytree(filled / "lake", tmp_path / "lake")


def add_pending(lake, *names):
    """Add two pending visits for each name, which is in their path."""
    for name in names:
        enqueue(lake.manifest, [("acme", packed([visit(visited_at=MOMENT, path=f"/{name}")] * 2))], NOW)


def compacted(lake):
    """Merge files and build rollups, without a sweep, so that the replaced files still exist."""
    Compactor(lake).run()
    RollupBuilder(lake).run()


def erased_after_a_merge(lake):
    compacted(lake)
    assert Eraser(lake).run("acme", Criteria(short_code="gone")).visits == 2


def all_erased(lake):
    assert Eraser(lake).run("acme", Criteria()).visits >= 18


def reclassified(lake):
    assert Reclassifier(lake).run(["acme", "other"]).rewritten
    Compactor(lake).run()


@pytest.mark.parametrize("history", [lambda lake: None, compacted, erased_after_a_merge, all_erased, reclassified])
def test_a_rebuild_preserves_every_visit_and_answer(root, filled, history):
    with opened(root) as lake:
        history(lake)
        there = every_visit(lake)
    before = answers(root)
    for lost in LOSSES if history is compacted else ("removed",):
        copy = shutil.copytree(root, root.with_name(lost))
        LOSSES[lost](copy / "manifest.sqlite")
        with pytest.raises(LakeDamaged, match=r"manifest\.sqlite"):
            Lake(copy)
        result = rebuilt(copy)
        assert (result.damaged, result.copy is None) == ([], lost == "removed")
        assert answers(copy) == before
        with opened(copy) as lake:
            assert every_visit(lake) == there, lost
            found = verify_lake(lake)
            assert (found.findings, found.unknown) == ([], 0)
            assert Importer(lake, now=lambda: NOW).run(filled / "access.log", Options("acme")).already_imported
            later = Compactor(lake, lambda: datetime.now(UTC) + 2 * READERS_GRACE)
            later.run()
            later.sweep()
            assert [len(visits) for visits in every_visit(lake)] == [len(visits) for visits in there], lost
    if history is compacted or IS_LONG:
        assert answers(copy) == before


@pytest.mark.parametrize("history", [compacted, all_erased])
def test_an_older_manifest_hides_newer_visits_until_a_rebuild(root, history):
    with opened(root) as lake:
        add_pending(lake, "waiting")
        older = kept_manifest(root)
        flush_all(lake)
        add_pending(lake, "later")
        flush_all(lake)
        history(lake)
        there = every_visit(lake)
    before = answers(root)
    put_back(older, root)
    with opened(root) as lake:
        assert verify_lake(lake).unknown > 0
        unknown = unknown_files(lake)
        with pytest.raises(OutdatedManifest):
            Compactor(lake).sweep()
        assert unknown_files(lake) == unknown
    rebuilt(root)
    with opened(root) as lake:
        assert flush_all(lake) == 0
        assert every_visit(lake) == there
    assert answers(root) == before


def test_rebuilding_a_healthy_manifest_loses_nothing(root):
    with opened(root) as lake:
        Compactor(lake).run()
        lake.manifest.behaviour.switch("acme", on=False)
        add_pending(lake, "waiting")
        batches, there = lake.manifest.logs.batches("acme", ""), every_visit(lake)
    assert rebuilt(root).pending == 2
    with opened(root) as lake:
        assert (lake.manifest.logs.batches("acme", ""), every_visit(lake)) == (batches, there)
        assert not lake.manifest.behaviour.is_used("acme")
        assert (lake.manifest.pending.backlog().visits, flush_all(lake)) == (2, 2)
        assert paths(lake)["/waiting"] == 2


def test_a_rebuild_counts_files_that_were_moved_to_unknown(root):
    with opened(root) as lake:
        there = every_visit(lake)
    (root / "unknown").mkdir(exist_ok=True)
    (root / "visits" / "organization=acme").rename(root / "unknown" / "organization=acme")
    remove_manifest(root)
    rebuilt(root)
    with opened(root) as lake:
        assert every_visit(lake) == there


def test_a_rebuild_asks_about_an_unfinished_import(root):
    with opened(root) as lake:
        land(lake, "new", [visit(visited_at=datetime(2026, 1, day)) for day in (1, 2, 3)])
        last = max(lake.manifest.files.live("new"), key=lambda file: file.day)
        (root / last.path).unlink()
    remove_manifest(root)
    (question,) = Rebuild(root).plan.questions
    assert "an import of new with at least 2 visits was not finished" in question.text
    rebuilt(root, questions=1, answer=False)
    with opened(root) as lake:
        assert (paths(lake, "new"), len(unknown_files(lake, "new"))) == ({}, 2)


def test_a_file_with_a_flipped_bit_is_reported_and_not_counted(root):
    path = next(root.glob("visits/organization=other/*/*"))
    column = pq.read_metadata(path).row_group(0).column(0)  # its last bytes belong to a page
    flip(path, column.data_page_offset + column.total_compressed_size - 2)
    remove_manifest(root)
    (reason,) = rebuilt(root).damaged
    assert reason.startswith(f"{path} cannot be read")
    with opened(root) as lake:
        assert unknown_files(lake) == [path]


def test_a_lake_in_use_is_not_rebuilt(root):
    with opened(root), pytest.raises(Conflict, match="stop the server"), locked_for_rebuild(root):
        pass


def test_a_manifest_from_a_newer_program_is_left_unchanged(root):
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db:
        db.execute("PRAGMA user_version = 99")
    content = (root / "manifest.sqlite").read_bytes()
    with pytest.raises(NewerVersion), locked_for_rebuild(root):
        Rebuild(root)
    assert (root / "manifest.sqlite").read_bytes() == content


def test_an_unreadable_manifest_is_not_mistaken_for_a_lost_one(root):
    with opened(root) as lake:
        add_pending(lake, "waiting")
    content = (root / "manifest.sqlite").read_bytes()
    (root / "manifest.sqlite-wal").mkdir()  # like on a failing disk, SQLite cannot open it
    with pytest.raises(LakeDamaged, match=r"cannot be read now .* but may be intact"):
        rebuilt(root)
    assert (root / "manifest.sqlite").read_bytes() == content
    (root / "manifest.sqlite-wal").rmdir()
    assert rebuilt(root).pending == 2


def test_erased_visits_do_not_return_from_a_killed_merge(root):
    with opened(root) as lake:
        kill_at_commit(Compactor(lake).run, "data.store.rewriting", "data.manifest.manifest")
        erase(lake, short_code="gone")
        there = paths(lake)
    remove_manifest(root)
    rebuilt(root)
    with opened(root) as lake:
        assert paths(lake) == there


def days_removed(lake, first_kept):
    """Erase all days before a given day in January."""
    erase(lake, before=date(2026, 1, first_kept))


def days_expired(lake, first_kept):
    """Expire all days before a given day in January."""
    now = datetime(2026, 1, first_kept, 12, tzinfo=UTC) + timedelta(days=30)
    delete_files(lake, apply_retention(lake, 30, now).dead, datetime.now(UTC))


@pytest.mark.parametrize("removed", [days_removed, days_expired])
def test_a_rebuild_counts_no_line_again_after_a_removal(lake, tmp_path, removed):
    """A log grew without a final newline, so the files of its last lines replaced each other in a chain; one file of
    the chain is erased or expires.
    """
    log, days = tmp_path / "access.log", [20, 21, 12, 22]
    for count in (2, 3, 4):
        log.write_text("".join(line(f"/a{n}", day) for n, day in enumerate(days[:count])).removesuffix("\n"))
        Importer(lake).run(log, Options("acme"))
    removed(lake, 13)
    there = paths(lake)
    assert there == {"/a0": 1, "/a1": 1, "/a3": 1}
    with rebuilt_lake(lake) as again:
        assert paths(again) == there


def test_a_merge_while_a_log_lands_loses_no_line(lake, tmp_path, monkeypatch):
    log = tmp_path / "access.log"
    log.write_text(text := line("/a", 1) + line("/b", 2)[:-1])
    Importer(lake).run(log, Options("acme"))
    log.write_text(text + "\n" + line("/c", 3))

    def merged_meanwhile(lake, staged):
        monkeypatch.undo()
        Compactor(lake).run(wait=False)
        return prepare_move(lake, staged)

    monkeypatch.setattr("data.store.landing.prepare_move", merged_meanwhile)
    Importer(lake).run(log, Options("acme"))
    with rebuilt_lake(lake) as again:
        assert paths(again) == {"/a": 1, "/b": 1, "/c": 1}


# Programs that continued with an older manifest, without the copy of its number


def unnoticed(older, lake):
    """Close a lake and restore an older manifest, without any sign that it is older."""
    lake.manifest.close()
    put_back(older, lake.root)
    (lake.root / "generation").unlink()


def logged(path, visits, days=3, name="a"):
    """Return a log of this many requests, spread over some days."""
    path.write_text("".join(line(f"/{name}{n}", 1 + n % days) for n in range(visits)))
    return path


@pytest.mark.parametrize("history", ["compacted", "erased", "erased in part"])
def test_a_log_imported_again_counts_once_and_completely(lake, tmp_path, monkeypatch, history):
    """The second import overwrites files from the first, whose other files have been merged or erased."""
    log, other = logged(tmp_path / "a.log", 30), logged(tmp_path / "b.log", 9, days=1, name="b")
    older = kept_manifest(lake.root)
    Importer(lake, now=lambda: NOW).run(other, Options("acme"))
    Importer(lake, now=lambda: NOW).run(log, Options("acme"))
    if history == "compacted":
        monkeypatch.setattr("data.tasks.merge_plan.VISITS_AT_ONCE", 0)  # a day at a time
        assert Compactor(lake).run(limit=1).partitions == 1
    else:
        erase(lake, **({"before": date(2026, 1, 2)} if history == "erased" else {"short_code": "a3"}))
    there = paths(lake)
    unnoticed(older, lake)
    with opened(lake.root) as again:
        assert Importer(again, now=lambda: NOW).run(log, Options("acme")).visits == 30
    rebuilt(lake.root)
    with opened(lake.root) as again:
        assert paths(again) == there
        assert verify_lake(again).findings == []


@pytest.mark.parametrize("is_merged", [False, True])
def test_pending_visits_in_an_older_manifest_count_once(lake, is_merged):
    """The pending visits a and b were already in a file, together with c, which the older manifest lacks."""
    add_pending(lake, "a", "b")
    older = kept_manifest(lake.root)
    add_pending(lake, "c")
    flush_all(lake)
    land(lake, "acme", [visit(visited_at=MOMENT, path="/d")] * 2)
    if is_merged:
        Compactor(lake).run()
        Compactor(lake, lambda: datetime.now(UTC) + 2 * READERS_GRACE).sweep()
    unnoticed(older, lake)
    with opened(lake.root) as again:
        files = {path: path.read_bytes() for path in lake.root.glob("visits/organization=acme/*/*")}
        add_pending(again, "e")
        assert flush_all(again) == 6
        assert {path: path.read_bytes() for path in files} == files
        land(again, "acme", [visit(visited_at=MOMENT, path="/f")] * 2)
        if is_merged:
            Compactor(again).run()
    assert rebuilt(lake.root, questions=is_merged).damaged == []
    with opened(lake.root) as again:
        assert paths(again) == {f"/{name}": 2 for name in "abcdef"}


@pytest.mark.parametrize(
    ("program", "history"),
    [
        ("import", "compacted before"),
        ("import", "compacted twice"),
        ("import", "cut line"),
        ("import", "no final newline"),
        ("follow", "cut line"),
    ],
)
def test_a_grown_log_counts_once_if_the_answer_is_yes(lake, tmp_path, program, history):
    """The older manifest has the log's first lines, and two visits from one of their days, which are merged with them
    in some histories."""
    log = tmp_path / "a.log"

    def land_log(lake, visits, cut=0):
        log.write_text(logged(log, visits).read_text()[: -cut or None])
        if program == "import":
            Importer(lake, now=lambda: NOW).run(log, Options("acme"))
        else:
            with closing(Follower(lake, Importer(lake), log, Options("acme"), notify=print)) as follower:
                follower.tick()

    land_log(lake, 5)
    land(lake, "acme", [visit(visited_at=MOMENT, path="/b")] * 2)
    older = kept_manifest(lake.root)
    land_log(lake, 15, cut={"cut line": 20, "no final newline": 1}.get(history, 0))
    if history.startswith("compacted"):
        Compactor(lake).run()
    if history == "compacted before":
        Compactor(lake, lambda: datetime.now(UTC) + 2 * READERS_GRACE).sweep()
    unnoticed(older, lake)
    with opened(lake.root) as again:
        land_log(again, 35)
        if history == "compacted twice":
            Compactor(again).run()
    for questions in (1, 0):
        assert rebuilt(lake.root, questions).damaged == []
    with opened(lake.root) as again:
        assert paths(again) == {f"/a{n}": 1 for n in range(35)} | {"/b": 2}
        assert verify_lake(again).findings == []
        land_log(again, 36)
        assert paths(again).total() == 38

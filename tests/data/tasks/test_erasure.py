"""Erasures delete exactly the matching visits, and leave no trace of them in the lake's folder."""

import fcntl
import os
import shutil
import sqlite3
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from itertools import count

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.disk.files import sha256_of
from data.errors import LakeDamaged
from data.ingest.importer import Importer, Options
from data.manifest.files import READERS_GRACE, Files
from data.manifest.manifest import Manifest
from data.store.layout import SPILL_LOCK, spill_folder
from data.store.pending import enqueue
from data.tasks import erasure as erasing
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser, delete_files
from data.tasks.reclassification import Reclassifier
from queries import ENTRIES, QueryFailed, Scope, Warehouse
from tests.faults.trials import tried
from tests.support.lakes import bytes_on_disk, dead_files, failing_at, files_of, flipped, landed, opened, rows_of
from tests.support.manifests import database_of
from tests.support.tables import examples
from tests.support.visits import land, packed, unpacked, visit

LARGEST = 2**63 - 1
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def at(day, hour=12, minute=0):
    return datetime(2026, 3, day, hour, minute)


def paths(lake, organization="acme"):
    """Return the paths of all visits, sorted."""
    return sorted(row["path"] for row in rows_of(lake, organization))


def erase(lake, organization="acme", dry_run=False, **criteria):
    return Eraser(lake).run(organization, Criteria(**criteria), dry_run)


def erase_and_delete(lake, organization="acme", **criteria):
    erased = erase(lake, organization, **criteria)
    delete_files(lake, erased.dead, erased.ended_at)
    assert lake.manifest.shrink()
    return erased


# Erased visits

VISITS_OF = {
    "/1": visit(visited_at=at(1), short_code="sale", domain="go.example", visitor=7),
    "/2": visit(visited_at=at(1, 23, 59), short_code="Sale", domain="go.example", visitor=8),
    "/3": visit(visited_at=at(2, 0), short_code="sale", domain="other.example", visitor=7),
    "/4": visit(visited_at=at(2), short_code=None, domain=None, visitor=None),
    "/5": visit(visited_at=at(2), short_code="sale", domain="www.go.example", visitor=LARGEST),
    "/6": visit(visited_at=at(3), short_code=None, domain="go.example", visitor=0),
    "/7": visit(visited_at=at(3), short_code="x' OR 'a'='a", domain="", visitor=None),
    "/8": visit(visited_at=at(4), short_code="sale", domain="xn--bcher-kva.example", visitor=-(1 << 63)),
}


@examples("criteria", "gone")
def test_exactly_the_visits_matching_all_criteria_are_erased(shared_lake, names, criteria, gone):
    if "before" in criteria:
        criteria = criteria | {"before": date.fromisoformat(criteria["before"])}
    name = names()
    land(shared_lake, name, [row | {"path": path} for path, row in VISITS_OF.items()])
    erased = erase(shared_lake, name, **criteria)
    assert paths(shared_lake, name) == [f"/{digit}" for digit in "12345678" if digit not in gone]
    assert erased.visits == len(gone)
    assert erased.partitions == len({VISITS_OF[f"/{digit}"]["day"] for digit in gone})
    assert shared_lake.manifest.organizations.epoch(name) == erased.partitions


def test_another_organization_keeps_its_visits_and_its_epoch(lake):
    for name in ("acme", "acme-2", "Acme"):
        land(lake, name, [row | {"path": path} for path, row in VISITS_OF.items()])
    before = landed(lake, "acme-2"), landed(lake, "Acme")
    erase_and_delete(lake)
    assert (landed(lake, "acme-2"), landed(lake, "Acme")) == before
    assert [lake.manifest.organizations.epoch(name) for name in ("acme", "acme-2", "Acme")] == [4, 0, 0]


CODES, DOMAINS, VISITORS = ("a", "A", "b", None), ("x.example", "y.example", None), (0, 1, LARGEST, None)
VISIT = st.builds(
    lambda day, second, code, domain, visitor: visit(
        visited_at=at(day) + timedelta(seconds=second), short_code=code, domain=domain, visitor=visitor
    ),
    st.integers(1, 4), st.integers(0, 99), *map(st.sampled_from, (CODES, DOMAINS, VISITORS)),
)  # fmt: skip
DAYS = st.none() | st.integers(1, 5).map(lambda day: at(day).date())
CRITERIA = st.builds(
    Criteria,
    short_code=st.sampled_from(CODES),
    domain=st.sampled_from((*DOMAINS, "X.example")),
    no_domain=st.sampled_from((None, True)),
    visitor=st.sampled_from(VISITORS),
    since=DAYS,
    before=DAYS,
)


def goes(row, criteria):
    wanted = (
        (criteria.short_code is None, lambda: row["short_code"] == criteria.short_code),
        (criteria.domain is None, lambda: row["domain"] == criteria.domain.lower()),
        (criteria.no_domain is None, lambda: row["domain"] is None),
        (criteria.visitor is None, lambda: row["visitor"] == criteria.visitor),
        (criteria.since is None, lambda: row["visited_at"].date() >= criteria.since),
        (criteria.before is None, lambda: row["visited_at"].date() < criteria.before),
    )
    return all(is_any or meets() for is_any, meets in wanted)


@given(batches=st.lists(st.lists(VISIT, min_size=1, max_size=25), min_size=1, max_size=3), criteria=CRITERIA)
@tried(6)
def test_an_erasure_keeps_the_other_visits_in_order(shared_lake, names, batches, criteria):
    name = names()
    for batch in batches:
        land(shared_lake, name, [row | {"path": f"/{number}"} for number, row in enumerate(batch)])
    before = landed(shared_lake, name)
    left = {day: [[row for row in rows if not goes(row, criteria)] for rows in files] for day, files in before.items()}
    files_before = {file.path: file for file in files_of(shared_lake, name)}
    told = Eraser(shared_lake).run(name, criteria, dry_run=True)
    assert landed(shared_lake, name) == before
    erased = Eraser(shared_lake).run(name, criteria)
    kept = {day: sorted(filter(None, files), key=str) for day, files in left.items()}
    assert landed(shared_lake, name) == {day: files for day, files in kept.items() if files}
    whole, rest = (sum(len(rows) for files in days.values() for rows in files) for days in (before, left))
    assert erased.visits == told.visits == whole - rest
    assert (erased.before, told.after) == (told.before, [])
    files_after = {file.path: file for file in files_of(shared_lake, name)}
    gone, new = files_before.keys() - files_after.keys(), files_after.keys() - files_before.keys()
    assert {file.path: file for file in erased.before} == {path: files_before[path] for path in gone}
    assert {file.path: file for file in erased.after} == {path: files_after[path] for path in new}


def test_a_dry_run_or_an_erasure_without_matches_changes_no_file(lake):
    land(lake, "acme", [visit(visited_at=at(day), short_code="a") for day in (3, 4)])
    before, files = bytes_on_disk(lake), files_of(lake)
    told = erase(lake, dry_run=True, short_code="a", before=date(2026, 3, 4))
    assert (told.visits, told.dead, bytes_on_disk(lake)) == (1, [], before)
    for nothing in (erase(lake, short_code="none"), erase(lake, "nobody")):
        assert (nothing.visits, nothing.partitions, nothing.before, nothing.after, nothing.dead) == (0, 0, [], [], [])
    assert (files_of(lake), lake.manifest.organizations.epoch("acme")) == (files, 0)


def test_an_erasure_reports_files_with_the_hashes_of_their_bytes(lake):
    land(lake, "acme", [visit(visited_at=at(day), short_code=code) for day in (3, 4, 5) for code in "ab"])
    before, told = [(sha256_of(lake.root / file.path), 2) for file in files_of(lake)], []
    criteria = Criteria("a", before=date(2026, 3, 5))
    erased = Eraser(lake).run("acme", criteria, progress=lambda *numbers: told.append(numbers))
    after = [(sha256_of(lake.root / file.path), 1) for file in files_of(lake) if file.visits == 1]
    assert [(file.sha256, file.visits) for file in erased.before] == before[:2]
    assert [(file.sha256, file.visits) for file in erased.after] == after
    assert told == [(1, 2), (2, 2)]


# Lifetime of files


def test_erased_files_outlast_running_queries_before_deletion(lake):
    land(lake, "acme", [visit(visited_at=at(3), short_code=code) for code in "ab"])
    (file,) = files_of(lake)
    with closing(Warehouse(lake)) as warehouse:
        scope = Scope("acme", date(2026, 3, 1), date(2026, 3, 9))
        overview, snapshot = ENTRIES["traffic-overview"], warehouse.snapshot(scope)
        erased = Eraser(lake, lambda: NOW).run("acme", Criteria("a"))
        assert dead_files(lake) == {file.path: NOW + timedelta(seconds=15)}
        assert (erased.dead, erased.ended_at) == ([file.path], NOW)
        assert warehouse.answer(overview, snapshot)["total_visits"] == 2
        assert warehouse.answer(overview, warehouse.snapshot(scope))["total_visits"] == 1
        for seconds, is_there in ((14, True), (15, False)):
            Compactor(lake, lambda: NOW + timedelta(seconds=seconds)).sweep()  # noqa: B023
            assert (lake.root / file.path).exists() == is_there
        with pytest.raises(QueryFailed):
            warehouse.answer(overview, snapshot)
        assert warehouse.answer(overview, warehouse.snapshot(scope))["total_visits"] == 1


def test_an_erasure_includes_dead_files_for_its_days(lake):
    for name in ("acme", "other"):
        for _ in range(2):
            land(lake, name, [visit(visited_at=at(day), short_code="a") for day in (3, 4)])
    Compactor(lake, lambda: NOW).run()
    compacted = dead_files(lake)
    assert set(compacted.values()) == {NOW + READERS_GRACE}
    erased = Eraser(lake, lambda: NOW).run("acme", Criteria("none", before=date(2026, 3, 4)))
    moved = {path for path, moment in dead_files(lake).items() if moment == NOW + erasing.GRACE}
    assert moved == {path for path in compacted if "=acme/day=2026-03-03" in path} == set(erased.dead)
    later = NOW + timedelta(hours=1)
    assert len(Eraser(lake, lambda: later).run("acme", Criteria("none")).dead) == 4
    assert {path: dead_files(lake)[path] for path in moved} == dict.fromkeys(moved, NOW + erasing.GRACE)


def test_the_write_ahead_log_is_emptied_unless_it_is_being_read(lake):
    land(lake, "acme", [visit()])
    log = lake.root / "manifest.sqlite-wal"
    with closing(sqlite3.connect(lake.root / "manifest.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM files").fetchall()
        erase(lake)
        assert not lake.manifest.shrink()
        assert log.stat().st_size > 0
        reader.execute("ROLLBACK")
    assert lake.manifest.shrink()
    assert log.stat().st_size == 0


# Damage


def test_an_erasure_ended_by_a_damaged_file_keeps_its_progress(lake):
    for day in (3, 4, 5):
        land(lake, "acme", [visit(visited_at=at(day), short_code=code, path=f"/{day}{code}") for code in "ab"])
    damaged = lake.root / files_of(lake)[1].path
    with flipped(damaged), pytest.raises(LakeDamaged, match=damaged.name):
        erase(lake, short_code="a")
    assert paths(lake) == ["/3b", "/4a", "/4b", "/5a", "/5b"]
    assert erase(lake, short_code="a").visits == 2


def test_whole_days_are_erased_despite_damaged_files(lake):
    for day in (3, 4, 5):
        land(lake, "acme", [visit(visited_at=at(day), path=f"/{day}")])
    first, second, _ = [lake.root / file.path for file in files_of(lake)]
    first.unlink()
    second.write_bytes(b"no Parquet")
    assert erase_and_delete(lake, before=date(2026, 3, 5)).visits == 2
    assert paths(lake) == ["/5"]
    assert not second.exists()


# Logs stay imported


def line(path="/abc", day=17, agent="Mozilla/5.0", referrer="-", host="go.example", second=3):
    return (
        f'{host}:443 203.0.113.7 - - [{day}/May/2015:10:05:{second:02} +0000] "GET {path} HTTP/1.1" 200 5316 '
        f'"{referrer}" "{agent}"\n'
    )


def test_erased_visits_do_not_return_if_their_log_is_reimported(lake, load):
    log = line("/gone") + line("/kept") + line("/gone", day=18)
    load(log)
    assert erase_and_delete(lake, short_code="gone").visits == 2
    assert load(log).already_imported
    assert paths(lake) == ["/kept"]
    grown = load(log + line("/gone", day=18) + line("/new"))
    assert (grown.continued, grown.visits) == (True, 2)
    assert paths(lake) == ["/gone", "/kept", "/new"]
    erase_and_delete(lake)
    assert load(log).already_imported
    assert paths(lake) == []


@pytest.mark.parametrize(("cut", "criteria"), [(6, {"short_code": "cut"}), (1, {})])
def test_a_deleted_unfinished_line_does_not_return_once_complete(lake, load, cut, criteria):
    whole = line("/kept") + line("/cut")
    assert load(whole[:-cut]).visits == 2
    erase_and_delete(lake, **criteria)
    kept = ["/kept"] if criteria else []
    assert paths(lake) == kept
    assert load(whole[:-cut]).already_imported
    for text in (whole, whole + line("/new")):
        load(text)
        assert paths(lake) == kept + (["/new"] if text != whole else [])


def test_after_a_failed_erasure_the_rest_of_a_line_lands(lake, load):
    whole = line("/kept") + line("/cut")
    load(whole[:-6])
    before = paths(lake)
    with failing_at("data.store.landing", "move_durably"):
        erase(lake, short_code="cut")
    assert paths(lake) == before
    load(whole)
    assert paths(lake) == ["/cut", "/kept"]


def test_an_erasure_keeps_the_lock_of_a_running_engine(lake):
    engine = duckdb.connect()
    spill_folder(lake.staging, engine)
    delete_files(lake, [], datetime.now(UTC) + timedelta(seconds=1))
    assert len([*lake.staging.glob(f"{SPILL_LOCK}*")]) == 1
    engine.close()


def test_a_kept_unfinished_line_is_replaced_once_complete(lake, load):
    whole = line("/a") + line("/cut")
    load(whole[:-2])
    erase(lake, short_code="a")
    (file,) = files_of(lake)
    assert file.unfinished_of is not None
    load(whole + line("/new"))
    assert paths(lake) == ["/cut", "/new"]


def test_a_rewritten_file_keeps_its_unfinished_line(lake):
    land(lake, "acme", [visit(short_code=code) for code in "ab"])
    with database_of(lake.manifest).transaction() as db:
        ((batch,),) = db.execute("SELECT id FROM batches").fetchall()
        db.execute("UPDATE files SET unfinished_of = ?", [batch])
        db.execute("UPDATE batches SET bytes = 9")
    erase(lake, short_code="a")
    assert [(file.visits, file.unfinished_of) for file in files_of(lake)] == [(1, batch)]
    assert lake.manifest.logs.batches("acme", "")[0].whole_size == 0


# No traces in the folder

CANARY = {
    "path": "/deep/canary-path",
    "agent": "Mozilla/5.0 canary-agent",
    "referrer": "https://canary-referrer.example/x",
}
WORDS = ("canary-path", "canary-agent", "canary-referrer", "canary-campaign", "canary-code", "canary.example")


def canaries(day, second=3):
    """Return log lines that contain all WORDS."""
    agent, referrer = CANARY["agent"], CANARY["referrer"]
    return "".join(
        line(path, day, agent, referrer, "canary.example", second)
        for path in (CANARY["path"], "/canary-code?utm_campaign=canary-campaign&utm_source=x")
    )


CANARIES = [
    visit(
        domain="canary.example", path=CANARY["path"], user_agent=CANARY["agent"], short_code="canary-code",
        referrer="canary-referrer.example", utm_campaign="canary-campaign", visited_at=moment
    )
    for moment in (datetime(2015, 5, 17, 9), datetime(2015, 5, 18, 9))
]  # fmt: skip

WAITING = packed(CANARIES * 50)


def traces(root):
    """Return which WORDS occur in which files in a folder, in their bytes or in compressed content."""
    found = {}
    for path in root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if content[-4:] == b"PAR1":
                content += str(pq.ParquetFile(path).read().to_pylist()).encode()
            if WAITING.body[64:128] in content:  # compressed, but always to the same bytes
                content += str(unpacked([WAITING.body])).encode()
            if words := {word for word in WORDS if word.encode() in content}:
                found[path.relative_to(root).as_posix()] = words
    return found


@pytest.fixture
def strewn(lake, load):
    """Leave traces of the same visits in every possible place in the lake; return the places by kind."""
    log = canaries(17) + line("/kept") + line("/kept", 18) + canaries(18)
    load(log[:-2])
    load(log + line("/kept"))  # the unfinished line's file is dead
    load(canaries(17, 5) + line("/kept", second=9))
    Compactor(lake).run()
    places = {"compacted": set(dead_files(lake))}
    land(lake, "acme", [*CANARIES, visit(path="/kept", visited_at=datetime(2015, 5, 18))])  # of other rules
    Reclassifier(lake).run(["acme"])
    places["reclassified"] = set(dead_files(lake)) - places["compacted"]
    live = [file.path for file in files_of(lake)]
    places["live"] = set(live)
    places["orphans"] = {
        f"visits/organization=acme/day={day}/{uuid.uuid4()}.parquet" for day in ("2015-05-17", "2014-01-01")
    }
    for orphan in places["orphans"]:
        (lake.root / orphan).parent.mkdir(exist_ok=True)
        shutil.copy(lake.root / live[0], lake.root / orphan)
    places["staged"] = {f".staging/{uuid.uuid4()}.parquet", ".staging/engine/duckdb_temp_storage_DEFAULT-0.tmp"}
    (lake.staging / "engine").mkdir(exist_ok=True)
    for staged in places["staged"]:
        shutil.copy(lake.root / live[0], lake.root / staged)
    enqueue(lake.manifest, [("acme", WAITING)], NOW)
    places["pending"] = {"manifest.sqlite-wal"}
    return places


@pytest.mark.parametrize("criteria", [{"domain": "canary.example"}, {"before": date(2015, 5, 19)}])
def test_erased_visits_leave_no_trace_in_the_folder(lake, strewn, criteria):
    there = traces(lake.root)
    for place, files in strewn.items():
        assert files & there.keys(), place
        assert set().union(*(there.get(file, ()) for file in files)) == set(WORDS), place
    kept = [] if "before" in criteria else ["/kept"] * 5
    assert erase_and_delete(lake, **criteria).visits == 2 + 2 + 2 + 2 + 100 + (5 - len(kept))
    assert (traces(lake.root), paths(lake), dead_files(lake)) == ({}, kept, {})
    assert (lake.root / "manifest.sqlite-wal").stat().st_size == 0
    if not kept:
        left = {path for path in lake.root.rglob("*.parquet") if "=_seed" not in str(path)}
        assert (len(left), {pq.read_metadata(path).num_rows for path in left}) == (1 + 2, {0})


def test_pending_visits_are_erased_even_if_others_move_them(lake, monkeypatch):
    """A flush ends early, although visits are left, if another task has moved some of them."""
    enqueue(lake.manifest, [("acme", packed(CANARIES))], NOW)
    flush, calls = erasing.flush_all, count()
    monkeypatch.setattr(erasing, "flush_all", lambda lake: flush(lake) if next(calls) else 0)
    assert erase(lake, dry_run=True).visits == 0
    assert erase_and_delete(lake).visits == 2
    assert next(calls) == 2
    assert traces(lake.root) == {}


def test_files_staged_during_the_deletion_are_kept(lake):
    land(lake, "acme", [visit()])
    erased = erase(lake)
    fresh = lake.staging / f"{uuid.uuid4()}.parquet"
    fresh.write_bytes(b"on its way")
    later = (erased.ended_at + timedelta(seconds=1)).timestamp()
    os.utime(fresh, (later, later))
    delete_files(lake, erased.dead, erased.ended_at)
    assert fresh.exists()


def stored_texts(path):
    """Return every string in a Parquet file's dictionaries, whether or not a row uses it."""
    table = pq.read_table(path, read_dictionary=pq.read_schema(path).names)
    columns = [column for column in table.columns if pa.types.is_dictionary(column.type)]
    return {text for column in columns for chunk in column.chunks for text in chunk.dictionary.to_pylist()}


def test_an_erasure_removes_strings_shared_with_other_days(lake, tmp_path):
    log = tmp_path / "access.log"
    log.write_text(line("/canary", 17) + line("/kept", 18))
    Importer(lake).run(log, Options("acme"))
    erase_and_delete(lake, before=date(2015, 5, 18))
    (file,) = files_of(lake)
    texts = stored_texts(lake.root / file.path)
    assert "/kept" in texts
    assert "/canary" not in texts
    assert b"canary" not in (lake.root / file.path).read_bytes()


@pytest.mark.parametrize("call", [1, 2], ids=["erasure", "compaction"])
def test_the_next_run_deletes_remaining_files(lake, call):
    land(lake, "acme", [*CANARIES, visit(visited_at=CANARIES[0]["visited_at"])])
    erased = erase(lake, domain="canary.example")
    with failing_at(Files, "purge", call):
        delete_files(lake, erased.dead, erased.ended_at)
    assert erase_and_delete(lake, domain="canary.example").visits == 0
    assert traces(lake.root) == {}
    assert dead_files(lake) == {}


# Concurrent programs


@pytest.mark.parametrize(("owner", "name"), [(erasing, "write_visits"), (Manifest, "replace"), (Compactor, "sweep")])
def test_imports_and_rewrites_wait_during_an_erasure(lake, monkeypatch, owner, name):
    land(lake, "acme", [visit(short_code=code) for code in "ab"])
    original, rewritable = getattr(owner, name), []

    def watched(*args, **kwargs):
        folder = os.open(lake.root, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
        with lake.rewrite_lock(False, "acme") as may_rewrite:
            rewritable.append(may_rewrite)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, watched)
    erase_and_delete(lake, short_code="a")
    assert rewritable == [False]


def test_erasures_during_imports_and_merges_lose_nothing(lake, tmp_path):
    days, log, erased, done = [17, 18, 19], tmp_path / "a.log", [], threading.Event()
    for number in range(4):
        moments = [datetime(2015, 5, day, number) for day in days]
        land(lake, "acme", [visit(visited_at=moment, path=f"/{number}") for moment in moments])
        land(lake, "acme", [row | {"visited_at": at, "day": at.date()} for at in moments for row in CANARIES])

    def load(own):
        importer = Importer(own)
        for number in range(4):
            log.write_text("".join(line(f"/log-{number}", day) for day in days))
            importer.run(log, Options("acme"))
            land(own, "acme", [visit(visited_at=datetime(2015, 5, day), path=f"/sent-{number}") for day in days])

    def compact(own):
        while not done.is_set():
            Compactor(own).run()

    with opened(lake.root) as one, opened(lake.root) as other, ThreadPoolExecutor(2) as pool:
        loading, compacting = pool.submit(load, one), pool.submit(compact, other)
        try:
            while not loading.done() or not erased:
                erased.append(erase(lake, domain="canary.example"))
        finally:
            done.set()
        for work in (loading, compacting):
            work.result()
    assert sum(one.visits for one in erased) == 4 * len(days) * len(CANARIES)
    delete_files(lake, {path for one in erased for path in one.dead}, erased[-1].ended_at)
    assert traces(lake.root) == {}
    expected = Counter(f"/{kind}{number}" for kind in ("", "log-", "sent-") for number in range(4) for _ in days)
    assert Counter(paths(lake)) == expected
    Compactor(lake).run()
    assert Counter(paths(lake)) == expected

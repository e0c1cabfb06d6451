"""Each acknowledged visit is moved into a Parquet file exactly once, despite failures."""

import ipaddress
import json
import sqlite3
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import Conflict, LakeDamaged
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.store import pending
from data.store.landing import Landing
from data.visits import VISITS
from tests.faults.lakes import assert_no_address
from tests.faults.trials import tried
from tests.support.lakes import failing_at, files_of, paths, rows_of, strays
from tests.support.manifests import database_of
from tests.support.visits import packed, unpacked, visit

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)


def some(*paths, day=4, **columns):
    moment = datetime(2026, 3, day, 12)
    return packed([visit(path=path, visited_at=moment, **columns) for path in paths])


def keep(lake, *paths, organization="acme", at=NOW, **columns):
    pending.enqueue(lake.manifest, [(organization, some(*paths, **columns))], at)


def waiting(lake):
    bodies = database_of(lake.manifest).rows("SELECT body FROM pending ORDER BY id")
    return [row["path"] for row in unpacked(body for (body,) in bodies)]


# Pending visits, and their landing


def test_a_flush_moves_20000_visits_at_a_time(lake):
    waiting = some(*map(str, range(2_500)))
    pending.enqueue(lake.manifest, [("acme", waiting)] * 18, NOW)
    assert pending.flush_all(lake) == 45_000
    assert sorted(file.visits for file in files_of(lake)) == [5_000, 20_000, 20_000]


def test_pending_visits_are_counted_and_visible_to_others(lake, reopened):
    assert lake.manifest.pending.backlog() == (0, None)
    assert pending.flush_all(lake) == 0
    assert lake.manifest.organizations.names() == []
    for minutes in (2, 0, 1):
        keep(lake, "/a", "/b", at=NOW + timedelta(minutes=minutes))
    keep(lake, "/c", organization="other", at=NOW + timedelta(minutes=9))
    assert lake.manifest.pending.backlog() == (7, NOW)
    assert waiting(reopened()) == ["/a", "/b"] * 3 + ["/c"]
    assert rows_of(lake) == []


def test_every_commit_waits_for_the_disk(lake):
    assert database_of(lake.manifest)._writer.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert database_of(lake.manifest)._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_pending_visits_of_each_organization_land_once(lake):
    keep(lake, "/a", "/b", "/a")
    pending.enqueue(lake.manifest, [("other", some("/a")), ("third", some("/b", "/c"))], NOW)
    keep(lake, "/c", day=5)
    assert pending.flush_all(lake) == 7
    assert pending.flush_all(lake) == 0
    assert lake.manifest.pending.backlog() == (0, None)
    assert {name: paths(lake, name) for name in lake.manifest.organizations.names()} == {
        "acme": {"/a": 2, "/b": 1, "/c": 1},
        "other": {"/a": 1},
        "third": {"/b": 1, "/c": 1},
    }
    assert [(file.day, file.visits, file.unfinished_of) for file in lake.manifest.files.live("acme")] == [
        (date(2026, 3, 4), 3, None),
        (date(2026, 3, 5), 1, None),
    ]
    assert strays(lake) == ([], set())
    assert lake.manifest.organizations.epoch("acme") == 0


def test_every_column_lands_unchanged(lake):
    texts = {name: f"a {name}" for name in VISITS.names if VISITS.field(name).type == pa.string()}
    moment = datetime(2026, 3, 4, 1, 2, 3, 456_789)
    whole = visit(**texts, visitor=-(2**63), is_malicious=True, status=999, visited_at=moment)
    rows = [whole, visit(path=""), visit(user_agent=None, method=None, status=None, is_malicious=None)]
    pending.enqueue(lake.manifest, [("acme", packed(rows))], NOW)
    pending.flush_all(lake)
    expected = [{name: row[name] for name in VISITS.names} for row in rows]
    assert sorted(rows_of(lake), key=str) == sorted(expected, key=str)


def test_visits_from_many_senders_land_sorted_in_one_file(lake):
    for code, second in (("b", 3), (None, 0), ("a", 9), ("b", 1), ("a", 2)):
        row = visit(short_code=code, visited_at=datetime(2026, 3, 4, 0, 0, second))
        pending.enqueue(lake.manifest, [("acme", packed([row]))], NOW)
    pending.flush_all(lake)
    assert len(lake.manifest.files.live("acme")) == 1
    told = [(row["short_code"], row["visited_at"].second) for row in rows_of(lake)]
    assert told == [("a", 2), ("a", 9), ("b", 1), ("b", 3), (None, 0)]


@pytest.mark.parametrize(("most", "files"), [(1, 7), (2, 4), (3, 3), (6, 2), (7, 1), (100, 1)])
def test_many_visits_are_moved_in_parts(lake, monkeypatch, most, files):
    monkeypatch.setattr(pending, "MAX_VISITS_PER_TRANSACTION", most)
    for number in range(7):
        keep(lake, f"/{number}")
    assert pending.flush_all(lake) == 7
    assert paths(lake) == {f"/{number}": 1 for number in range(7)}
    assert len(lake.manifest.files.live("acme")) == files


def test_moving_long_visits_takes_less_than_80_mb_of_memory(lake):
    for first in range(0, 100_000, 1_000):
        rows = [visit(path=f"/{number}", user_agent=f"{number:x>300}") for number in range(first, first + 1_000)]
        pending.enqueue(lake.manifest, [("acme", packed(rows))], NOW)
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        assert pending.flush_all(lake) == 100_000
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < 80_000_000


def test_only_some_of_the_visits_are_unpacked_at_a_time(lake, monkeypatch):
    monkeypatch.setattr(pending, "PIECE_VISITS", 3)
    table_of, pieces = pending.table_of, []

    def counted(parts):
        pieces.append(sum(len(part.numbers) for part in parts))
        return table_of(parts)

    monkeypatch.setattr(pending, "table_of", counted)
    for number in range(7):
        keep(lake, f"/{number}")
        keep(lake, f"/{number}", organization="other")
    assert pending.flush_all(lake) == 14
    assert paths(lake) == paths(lake, "other") == {f"/{number}": 1 for number in range(7)}
    assert (sum(pieces), max(pieces)) == (14, 3)
    assert [len(lake.manifest.files.live(name)) for name in ("acme", "other")] == [1, 1]


def test_a_flush_that_fails_halfway_keeps_completed_work(lake, monkeypatch):
    keep(lake, "/0", "/1", "/2")  # more than one transaction moves
    for number in range(3, 7):
        keep(lake, f"/{number}")
    with monkeypatch.context() as patch, failing_at("data.store.landing", "sha256_of", 3):
        patch.setattr(pending, "MAX_VISITS_PER_TRANSACTION", 2)
        pending.flush_all(lake)
    assert (paths(lake), waiting(lake)) == ({f"/{number}": 1 for number in range(5)}, ["/5", "/6"])
    assert pending.flush_all(lake) == 2
    assert paths(lake) == {f"/{number}": 1 for number in range(7)}


STEPS = st.lists(
    st.tuples(st.sampled_from(("acme", "other")), st.lists(st.integers(1, 4), min_size=1, max_size=6)) | st.none(),
    min_size=1,
    max_size=12,
)


@given(STEPS, st.integers(1, 12))
@tried(10)
def test_visits_survive_any_order_of_enqueues_and_flushes(lake, steps, most):
    names, kept = count(), {"acme": Counter(paths(lake)), "other": Counter(paths(lake, "other"))}
    unique = len(kept["acme"]) + len(kept["other"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "MAX_VISITS_PER_TRANSACTION", most)
        for step in [*steps, None]:
            if step is None:
                pending.flush_all(lake)
                continue
            organization, days = step
            for day in days:
                path = f"/{unique}-{next(names)}"
                keep(lake, path, path, organization=organization, day=day)
                kept[organization][path] += 2
    assert {name: paths(lake, name) for name in kept} == kept
    assert strays(lake) == ([], set())


# Failures


@contextmanager
def failing_writer(lake, monkeypatch, statement, is_done=False, times=1):
    """Make a statement on the manifest's writing connection fail this many times."""
    execute, left = database_of(lake.manifest)._writer.execute, [*range(times)]

    def failing(sql, *args):
        fails = sql.startswith(statement) and left
        result = execute(sql, *args) if is_done or not fails else None
        if fails:
            left.pop()
            raise sqlite3.OperationalError("disk I/O error")
        return result

    with monkeypatch.context() as patch:
        patch.setattr(database_of(lake.manifest)._writer, "execute", failing)
        yield


@pytest.fixture
def three_files(lake):
    """A lake with pending visits of two organizations, one of them on two days."""
    keep(lake, "/a", "/b")
    keep(lake, "/c", day=5)
    keep(lake, "/d", organization="other")
    return lake


def assert_all_wait_and_then_land_once(lake, left=0):
    """Check that nothing has landed, that this many files are left over, and that the next flush needs no further
    files.
    """
    assert waiting(lake) == ["/a", "/b", "/c", "/d"]
    assert (paths(lake), paths(lake, "other")) == ({}, {})
    staged, moved = strays(lake)
    assert (staged, len(moved)) == ([], left)
    assert pending.flush_all(lake) == 4
    assert_all_landed_once(lake)


def assert_all_landed_once(lake):
    assert (paths(lake), paths(lake, "other")) == ({"/a": 1, "/b": 1, "/c": 1}, {"/d": 1})
    assert strays(lake) == ([], set())


FULL = sqlite3.OperationalError("database or disk is full")
FAILURES = [
    *(
        ("data.store.landing", name, call, is_done, OSError("No space left"))
        for name in ("write_parquet", "write_visits", "sha256_of", "move_durably")
        for call, is_done in ((1, False), (2, True), (3, False))
    ),
    *(("data.manifest.pending", "insert_files", 1, is_done, FULL) for is_done in (False, True)),
    *(("data.store.landing", "move_durably", 2, True, error()) for error in (KeyboardInterrupt, SystemExit)),
]


@pytest.mark.parametrize(("module", "name", "call", "is_done", "error"), FAILURES)
def test_a_failure_at_any_step_keeps_all_visits_pending(three_files, module, name, call, is_done, error):
    with failing_at(module, name, call, is_done, error):
        pending.flush_all(three_files)
    assert_all_wait_and_then_land_once(three_files)


@pytest.mark.parametrize("statement", ["BEGIN", "DELETE", "COMMIT"])
def test_a_failure_of_the_manifest_keeps_all_visits_pending(three_files, monkeypatch, statement):
    with failing_writer(three_files, monkeypatch, statement), pytest.raises(sqlite3.OperationalError, match="I/O"):
        pending.flush_all(three_files)
    assert_all_wait_and_then_land_once(three_files)


def test_the_next_flush_overwrites_files_from_failed_commits(three_files, monkeypatch):
    with failing_writer(three_files, monkeypatch, "COMMIT", times=9), pytest.raises(sqlite3.OperationalError):
        pending.flush_all(three_files)
    assert_all_wait_and_then_land_once(three_files, left=3)


def test_a_failure_after_the_commit_keeps_all_visits_landed(three_files, monkeypatch):
    with failing_writer(three_files, monkeypatch, "COMMIT", is_done=True), pytest.raises(sqlite3.OperationalError):
        pending.flush_all(three_files)
    assert pending.flush_all(three_files) == 0
    assert_all_landed_once(three_files)


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
def test_unstorable_visits_do_not_block_later_ones(lake, monkeypatch, statement):
    with failing_writer(lake, monkeypatch, statement), pytest.raises(sqlite3.OperationalError):
        keep(lake, "/lost")
    keep(lake, "/kept")
    assert waiting(lake) == ["/kept"]


def test_visits_of_several_organizations_are_all_stored_or_none(lake):
    with pytest.raises(sqlite3.Error):
        pending.enqueue(lake.manifest, [("acme", some("/a")), (None, some("/b"))], NOW)
    assert waiting(lake) == []


def test_unreadable_visits_stay_pending_without_blocking_others(lake):
    for path in ("/a", "/damaged", "/b", "/c"):
        keep(lake, path)
    keep(lake, "/d", organization="other")
    with database_of(lake.manifest).transaction() as db:
        second = "SELECT id FROM pending ORDER BY id LIMIT 1 OFFSET 1"
        ((key,),) = db.execute(f"UPDATE pending SET body = x'00' WHERE id = ({second}) RETURNING id").fetchall()
    for _ in range(2):
        with pytest.raises(
            LakeDamaged, match=rf"^1 pending visit of acme cannot be read \(in the manifest's table pending: {key}\)"
        ):
            pending.flush_all(lake)
        assert (paths(lake), paths(lake, "other")) == ({"/a": 1, "/b": 1, "/c": 1}, {"/d": 1})
    assert lake.manifest.pending.backlog().visits == 1
    with pytest.raises(LakeDamaged):
        pending.check_pending(lake.manifest, "acme")
    pending.check_pending(lake.manifest, "other")
    keep(lake, "/e", organization="other")
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE pending SET body = x'00'")
    with pytest.raises(LakeDamaged, match=r"^2 pending visits of acme, other cannot be read"):
        pending.check_pending(lake.manifest)


# Concurrent flushes


def test_concurrent_flushers_move_every_visit_once(lake, reopened, monkeypatch):
    """In tests/faults/test_chaos.py, processes that do this are killed while visits arrive."""
    monkeypatch.setattr(pending, "MAX_VISITS_PER_TRANSACTION", 10)
    for number in range(40):
        keep(lake, f"/{number}", organization=("acme", "other")[number % 2])
    begun = threading.Barrier(4)

    def flush(lake):
        begun.wait()
        return pending.flush_all(lake)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(flush, [lake, lake, reopened(), reopened()])) == 40
    assert paths(lake) + paths(lake, "other") == {f"/{number}": 1 for number in range(40)}
    assert strays(lake) == ([], set())


def test_organizations_are_unpacked_and_written_one_by_one(lake, monkeypatch):
    for organization in ("acme", "other"):
        keep(lake, "/", organization=organization)
    steps = []

    def noted(step, done):
        return lambda *args: steps.append(step) or done(*args)

    monkeypatch.setattr(pending, "table_of", noted("unpacked", pending.table_of))
    monkeypatch.setattr(Landing, "prepare_move", noted("written", Landing.prepare_move))
    assert pending.flush_all(lake) == 2
    assert steps == ["unpacked", "written"] * 2


def test_a_flush_beaten_by_another_moves_no_later_visit(lake, reopened, monkeypatch):
    keep(lake, "/old")
    rows = lake.manifest.pending
    move = rows.land

    def late(*args):
        monkeypatch.setattr(rows, "land", move)
        assert pending.flush_all(reopened()) == 1
        keep(lake, "/new")
        with pytest.raises(Conflict):
            move(*args)
        raise Conflict("")

    monkeypatch.setattr(rows, "land", late)
    assert pending.flush_all(lake) == 0
    assert (paths(lake), strays(lake)) == ({"/old": 1}, ([], set()))
    assert pending.flush_all(lake) == 1
    assert paths(lake) == {"/old": 1, "/new": 1}


# No address

ADDRESSES = ("198.51.100.23", "2001:db8:cafe::23", "2001:DB8:CAFE::24", "::ffff:198.51.100.25")
SECRETS = ("canary-user", "canary-password", "canary-query", "canary-part", "canary-referrer-path",
           "canary-referrer-query")  # fmt: skip


def test_addresses_and_secrets_in_requests_never_reach_the_disk(lake, monkeypatch):
    intake = LiveIngest(lake, now=lambda: NOW)
    whole = {
        "url": "https://canary-user:canary-password@go.example/canary-path?q=canary-query&utm_source=x#canary-part",
        "referrer": "https://canary-user@t.co/canary-referrer-path?canary-referrer-query#canary-part",
        "user_agent": "Mozilla/5.0",
    }
    rows = [whole | {"ip": ip} for ip in ADDRESSES] + [whole | {"ip": f"{ip} canary"} for ip in ADDRESSES]
    rows += [whole | {"ip": ip, "status": ip} for ip in ADDRESSES] + [whole | {"time": ip} for ip in ADDRESSES]
    (landed,) = intake.land([Submission("acme", [json.dumps(row).encode() for row in rows])])
    assert (landed.accepted, len(landed.refused)) == (4, 12)
    assert (lake.root / "manifest.sqlite-wal").stat().st_size > 0
    canaries = {form.encode() for text in (*ADDRESSES, *SECRETS) for form in (text, text.lower())}
    canaries |= {ipaddress.ip_address(text).packed for text in ADDRESSES if ":" in text}
    moves, move = [], sys.modules["data.store.landing"].move_durably

    def looking(source, target):
        assert_no_address(lake.root, canaries=canaries)
        moves.append(move(source, target))
        assert_no_address(lake.root, canaries=canaries)

    assert_no_address(lake.root, canaries=canaries)
    monkeypatch.setattr("data.store.landing.move_durably", looking)
    pending.flush_all(lake)
    database_of(lake.manifest).rows("PRAGMA wal_checkpoint(TRUNCATE)")
    assert_no_address(lake.root, canaries=canaries)
    assert len(moves) == 1
    with pytest.raises(AssertionError, match=r"\.parquet"):
        assert_no_address(lake.root, canaries=[b"/canary-path"])
    assert len({row["visitor"] for row in rows_of(lake)}) == 4
    assert [text for text in ADDRESSES if text.lower() in str(landed).lower()] == []

"""A server's background work: when each task is due, which errors stop it, and the state after a shutdown."""

import asyncio
import itertools
import sqlite3
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from data import LakeDamaged
from data.errors import Conflict
from data.ingest.visitor_ids import LIFETIME, daily_salts
from data.manifest.clock import format_time
from data.manifest.files import READERS_GRACE
from data.publish.publisher import LakePublisher
from data.store import pending
from data.tasks.compaction import CompactionResult, merge_day
from data.tasks.merge_plan import MAX_OPEN_FILES
from service.ops import maintenance as upkeep
from service.ops.maintenance import CHECK_AFTER, FLUSH_AFTER, FLUSH_VISITS, TASKS, Maintenance
from tests.support import published
from tests.support.clock import Clock
from tests.support.lakes import date_ahead, paths, rot
from tests.support.manifests import database_of
from tests.support.tables import examples
from tests.support.visits import land, links, packed, visit

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
PATIENCE = 60  # seconds; automatic work comes within one or two
NO_MERGE = CompactionResult()


@pytest.fixture
def clock():
    return Clock(NOW)


class Hasty:
    """asyncio with sleeps that are a thousand times shorter, and at most 10 ms."""

    def __getattr__(self, name):
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds):
        await asyncio.sleep(min(seconds / 1_000, 0.01))


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Merge past days without a quiet period."""
    monkeypatch.setattr(upkeep, "QUIET_PERIOD", timedelta(0))


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(upkeep, "asyncio", Hasty())
    monkeypatch.setattr(upkeep, "TURN_SECONDS", 0.01)


@pytest.fixture
def made(lake, control, clock):
    """Make a lake's tasks, which the test runs one by one."""
    with ExitStack() as stack:

        def make(retention_days=None, **parts):
            chores = Maintenance(lake, control, clock, retention_days=retention_days, **parts)
            stack.callback(chores._threads.shutdown)
            return chores

        yield make


@pytest.fixture
def chores(made):
    return made()


def working(lake, control, clock, until, meanwhile=lambda: None, detection=None):
    """Run the tasks until a condition is true, then end them."""

    async def work():
        chores = Maintenance(lake, control, clock, detection=detection)
        chores.begin()
        meanwhile()
        given_up = time.monotonic() + PATIENCE
        while not (has_come := until()) and time.monotonic() < given_up:
            await asyncio.sleep(0.005)
        await chores.end()
        assert has_come

    asyncio.run(work())


def keep(lake, *names, at=NOW, day=4):
    moment = datetime(2026, 3, day, 12)
    rows = [visit(path=name, visited_at=moment) for name in names]
    pending.enqueue(lake.manifest, [("acme", packed(rows))], at)


def waits(lake):
    return database_of(lake.manifest).rows("SELECT coalesce(sum(visits), 0) FROM pending")[0][0]


def live(lake):
    return {file.path: file for file in lake.manifest.files.live("acme")}


def test_tasks_are_sorted_by_interval():
    assert [task.every for task in TASKS] == sorted(task.every for task in TASKS)


def test_every_task_is_described_by_a_sentence():
    assert [task for task in TASKS if not task.what.endswith(".")] == []


def test_landed_visits_are_published_within_a_minute(lake, made, clock, monkeypatch, tmp_path):
    copy, landed, waited = tmp_path / "copy", [], []

    class Simulated(Hasty):
        """asyncio with sleeps that land a visit and advance the clock."""

        @staticmethod
        async def sleep(seconds):
            if seconds >= 1:
                there = len(published.files_of(copy / "acme/visits")) if copy.exists() else 0
                waited.extend(clock.now - at for at in landed[len(waited) : there])
                land(lake, "acme", [visit(path=f"/{len(landed)}")])
                landed.append(clock.now)
            clock.now += timedelta(seconds=seconds)
            if len(waited) == 4:
                raise asyncio.CancelledError

    monkeypatch.setattr(upkeep, "asyncio", Simulated())
    chores = made(publisher=LakePublisher(lake, str(copy), clock))
    (group,) = [group for group in chores._groups if any(task.name == "publish" for task in group[1])]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(chores._repeat(*group))
    assert max(waited) <= timedelta(minutes=1)


# Flushing


def test_visits_are_flushed_once_the_oldest_is_ten_seconds_old(lake, clock, chores, monkeypatch):
    assert timedelta(seconds=10) == FLUSH_AFTER
    keep(lake, "/a")
    keep(lake, "/b", at=NOW + timedelta(seconds=9))
    for seconds, left in ((0, 2), (9.999, 2), (10, 0), (16, 1), (24.9, 1), (25, 0)):
        if seconds == 16:
            keep(lake, "/c", at=NOW + timedelta(seconds=15))
        clock.now = NOW + timedelta(seconds=seconds)
        chores.flush_if_due()
        assert waits(lake) == left
    assert paths(lake) == {"/a": 1, "/b": 1, "/c": 1}
    keep(lake, "/d", at=NOW + timedelta(days=365))  # the clock was ahead
    chores.flush_if_due()
    assert waits(lake) == 0
    monkeypatch.setattr(upkeep, "flush_all", lambda _: pytest.fail("there is nothing to flush"))
    clock.now += timedelta(days=1)
    chores.flush_if_due()


def test_too_many_pending_visits_are_flushed(lake, chores, monkeypatch):
    assert FLUSH_VISITS == 20_000
    monkeypatch.setattr(upkeep, "FLUSH_VISITS", 50)
    pending.enqueue(lake.manifest, [("acme", packed([visit(path="/a")] * 49))], NOW)
    chores.flush_if_due()
    assert waits(lake) == 49
    keep(lake, "/b")
    chores.flush_if_due()
    assert waits(lake) == 0
    assert paths(lake) == {"/a": 49, "/b": 1}


def test_visits_that_arrive_during_a_flush_wait_for_the_next(lake, clock, chores, monkeypatch):
    keep(lake, "/0", at=NOW - FLUSH_AFTER)
    move, turns = lake.manifest.pending.land, itertools.count(1)

    def busy(*args):
        if (turn := next(turns)) < 5:
            keep(lake, f"/{turn}")
        move(*args)

    monkeypatch.setattr(lake.manifest.pending, "land", busy)
    chores.flush_if_due()
    assert (len(live(lake)), waits(lake)) == (1, 1)


# Each task alone


def check_was(lake, file, at):
    """Set the time when a live file was last checked."""
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE files SET checked_at = ? WHERE path = ?", [format_time(at), file.path])


def let_rot(lake, file, checked_at):
    """Change a byte of a live file where merges also fail to read it, and set when the file was last checked."""
    rot(lake, lake.root / file.path, -30)
    check_was(lake, file, checked_at)


@pytest.fixture
def broken(lake, clock):
    """The path of another organization's damaged file, which is due for a check."""
    clock.now = datetime.now(UTC)
    land(lake, "other", [visit(path="/broken")])
    (file,) = lake.manifest.files.live("other")
    let_rot(lake, file, clock.now - CHECK_AFTER - timedelta(seconds=1))
    return file.path


def test_maintenance_performs_every_due_task(lake, control, clock, hasty, broken, caplog):
    for _ in range(3):
        land(lake, "acme", [visit(path="/merged", visited_at=datetime(2026, 3, 3))])
    old = clock.now - LIFETIME - timedelta(seconds=1)
    daily_salts(lake.salts, [old.date()], old)
    orphan = lake.root / "rollups/organization=acme/month=2026-03-01/orphan.parquet"
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"")
    keep(lake, "/waiting", at=clock.now - FLUSH_AFTER)
    told = []

    def salts_left():
        with sqlite3.connect(lake.salts) as db:
            left = db.execute("SELECT count(*) FROM salts").fetchone()[0]
        db.close()
        return left

    def all_done():
        told[:] = caplog.messages
        files = Counter(file.day.day for file in lake.manifest.files.live("acme"))
        return files == {3: 1, 4: 1} and "".join(told) and not salts_left() and not orphan.exists()

    working(lake, control, clock, all_done)
    assert paths(lake) == {"/merged": 3, "/waiting": 1}
    (problem,) = told
    assert f"{broken} is damaged (its SHA-256" in problem


def test_endless_rollups_do_not_stop_merges_or_file_checks(lake, control, clock, hasty, broken, monkeypatch, caplog):
    merges = Counter()
    monkeypatch.setattr(upkeep.Compactor, "run", lambda *_, are_past, **__: merges.update([are_past]) or NO_MERGE)
    monkeypatch.setattr(upkeep.RollupBuilder, "run", lambda *_, **__: 1)
    working(lake, control, clock, lambda: caplog.messages and merges[True] > 2)
    assert f"{broken} is damaged (its SHA-256" in caplog.text


def test_dead_files_are_swept_after_their_grace_period(lake, clock, chores):
    land(lake, "acme", [visit()])
    land(lake, "acme", [visit()])
    before = live(lake)
    assert chores.close_days() is True
    assert chores.close_days() is False
    for ahead in (timedelta(0), READERS_GRACE - timedelta(seconds=1), READERS_GRACE):
        clock.now = NOW + ahead
        chores.sweep()
        assert {(lake.root / path).exists() for path in before} == {ahead < READERS_GRACE}
    assert sum(paths(lake).values()) == 2


def test_salts_are_deleted_when_they_are_48_hours_old(lake, clock, chores):
    salt = daily_salts(lake.salts, [NOW.date()], NOW)[NOW.date()]
    for ahead, left in ((LIFETIME, 1), (LIFETIME + timedelta(seconds=1), 0)):
        clock.now = NOW + ahead
        chores.forget_salts()
        assert lake.salts.read_bytes().count(salt.encode()) == left


@pytest.mark.parametrize(("seconds", "steps"), [(0, 1), (600, 3)])
def test_a_turn_ends_at_its_time_limit_or_when_no_work_is_left(chores, monkeypatch, seconds, steps):
    monkeypatch.setattr(upkeep, "TURN_SECONDS", seconds)
    left = [True, True, False]
    assert asyncio.run(chores._take_turn(lambda _: left.pop(0))) == (steps < 3)
    assert len(left) == 3 - steps


def test_salts_are_deleted_while_detectors_run_a_long_time(lake, control, clock, hasty):
    started, interrupted = threading.Event(), threading.Event()

    class Endless:
        interrupt = close = interrupted.set

        @staticmethod
        def run_next():
            started.set()
            interrupted.wait(2 * PATIENCE)
            return False

    salt = daily_salts(lake.salts, [NOW.date()], NOW)[NOW.date()].encode()

    def is_forgotten():
        if started.is_set():
            clock.now = NOW + LIFETIME + timedelta(seconds=1)
        return salt not in lake.salts.read_bytes()

    working(lake, control, clock, is_forgotten, detection=Endless())
    assert started.is_set()


def test_files_that_landed_while_the_clock_was_ahead_are_checked(lake, chores):
    land(lake, "acme", [visit()])
    links(lake, "acme", [{"short_code": "a", "target_url": "https://shop.example"}])
    date_ahead(lake)
    assert [chores.recheck_files() for _ in range(3)] == [True, True, False]
    now = datetime.now(UTC)
    assert all(file.checked_at <= now for file in lake.manifest.files.live("acme"))
    assert lake.manifest.links.all_live(before=now - timedelta(minutes=1)) == []


def test_old_days_are_deleted_once_the_clock_is_confirmed(lake, made, clock, caplog):
    for day in (1, 13):
        land(lake, "acme", [visit(visited_at=datetime(2026, 3, day), path=f"/{day}")])
    chores = made(5)
    for hours, kept in ((24, 2), (24.25, 2), (47, 2), (48, 1)):
        clock.now = NOW + timedelta(hours=hours)
        chores._run_safely(Maintenance.retain)
        assert len(paths(lake)) == kept
    said = [message.partition(",")[0] for message in caplog.messages]
    assert said == ["the clock says 2026-03-16", "the clock says 2026-03-17"]


def test_days_are_not_merged_while_their_files_are_rewritten(lake, chores):
    for organization, day in itertools.product(("acme", "other"), (3, 3, 4, 4)):
        land(lake, organization, [visit(visited_at=datetime(2026, 3, day))])
    other = type(lake)(lake.root)
    with other.rewrite_lock():
        assert chores.close_days() is False
    with other.rewrite_lock(organization="acme"):
        assert [chores.close_days() for _ in range(2)] == [True, False]
        assert {file.organization: file.visits for file in lake.manifest.files.live("other")} == {"other": 2}
        assert len(lake.manifest.files.live("acme")) == 4
    other.manifest.close()
    assert [chores.close_days() for _ in range(2)] == [True, False]
    assert len(live(lake)) == 2


PAST, OPEN, MANY = datetime(2026, 3, 3), NOW.replace(tzinfo=None), MAX_OPEN_FILES + 1


@pytest.mark.parametrize(
    ("day", "files", "most", "code"),
    [(PAST, 2, 1, 0), (PAST, 1, 1, None), (OPEN, MANY, MANY - 1, 0), (OPEN, MANY, MANY, None)],
)
def test_days_with_too_many_visits_are_merged_by_a_new_process(lake, chores, monkeypatch, day, files, most, code):
    monkeypatch.setattr("data.tasks.compaction.MAX_VISITS_IN_SERVER", most)
    for _ in range(files):
        land(lake, "acme", [visit(visited_at=day)])
    merge, process = chores.close_days, chores._process
    if day == OPEN:
        merge, process = chores.merge_open_days, chores._merging_process
    assert [merge() for _ in range(2)] == [True, False]
    assert [(file.visits, bool(file.behaviour_version)) for file in live(lake).values()] == [(files, day == PAST)]
    assert (process._running and process._running.returncode) == code


def test_open_days_are_merged_and_past_days_closed_separately(lake, chores):
    for day in (*[OPEN] * MANY, PAST, PAST):
        land(lake, "acme", [visit(visited_at=day)])
    assert [chores.merge_open_days() for _ in range(2)] == [True, False]
    assert [chores.close_days() for _ in range(2)] == [True, False]


def look(chores, most=20):
    """Check files until none is due, as a round does; return the problems that it would log."""
    findings = []
    for _ in range(most):
        try:
            if not chores.recheck_files():
                return findings
        except (LakeDamaged, OSError) as error:
            findings.append(str(error))
    return findings


def test_a_file_is_checked_daily_and_not_served_if_damaged(lake, clock, chores):
    assert timedelta(hours=24) == CHECK_AFTER
    for name in ("/a", "/b", "/c"):
        land(lake, "acme", [visit(path=name)])
    clock.now = datetime.now(UTC) - timedelta(seconds=30)
    old, young, sound = live(lake).values()
    let_rot(lake, old, clock.now - CHECK_AFTER - timedelta(seconds=1))
    let_rot(lake, young, clock.now - CHECK_AFTER + timedelta(seconds=1))
    check_was(lake, sound, NOW - 2 * CHECK_AFTER)
    assert lake.verified_path(live(lake)[old.path])
    assert [old.path in trouble for trouble in look(chores)] == [True]
    after = live(lake)
    assert after[sound.path].checked_at > clock.now
    assert after[young.path].checked_at < clock.now - CHECK_AFTER + timedelta(seconds=2)
    assert after[old.path].changed_ns == 0
    for _ in range(2):
        with pytest.raises(LakeDamaged, match=old.path.rpartition("/")[2]):
            lake.verified_path(after[old.path])


@pytest.mark.parametrize("damage", ["changed", "missing", "looked at before"])
def test_a_damaged_file_does_not_stop_checks_of_other_files(lake, clock, chores, damage):
    for name in ("/a", "/b"):
        land(lake, "acme", [visit(path=name)])
    first, second = live(lake).values()
    let_rot(lake, first, NOW - 2 * CHECK_AFTER)
    let_rot(lake, second, NOW - CHECK_AFTER - timedelta(seconds=1))
    if damage == "missing":
        (lake.root / first.path).unlink()
    elif damage == "looked at before":
        with pytest.raises(LakeDamaged):
            lake.recheck(live(lake)[first.path])
        check_was(lake, first, NOW - 2 * CHECK_AFTER)
    findings = look(chores)
    assert [second.path in trouble for trouble in findings].count(True) == 1
    assert look(chores) == []  # no round repeats an earlier message


# Problems


@contextmanager
def failing(monkeypatch, name, *errors):
    """Make a function always fail: twice with each error in order, then with the last; yield a list with an item for
    each run."""
    turns = []

    def fail(*_, **__):
        turns.append(1)
        raise errors[min((len(turns) - 1) // 2, len(errors) - 1)]

    with monkeypatch.context() as patch:
        patch.setattr(name, fail)
        yield turns


ERRORS = {
    "x.parquet is missing; restore it from a backup.": LakeDamaged("x.parquet is missing; restore it from a backup."),
    "[Errno 28] No space left on device": OSError(28, "No space left on device"),
    "database or disk is full": sqlite3.OperationalError("database or disk is full"),
    "background work failed: MemoryError: ": MemoryError(),
    "background work failed: RuntimeError: x": RuntimeError("x"),
    "background work failed: ArrowInvalid: x": pa.ArrowInvalid("x"),
}
"""Possible errors, by their log messages; the last three would be bugs."""


@examples("place")
def test_task_errors_are_logged_once_and_block_no_other_task(
    lake, control, clock, hasty, broken, monkeypatch, caplog, place
):
    if place != "data.manifest.pending.Pending.backlog":
        keep(lake, "/waiting", at=clock.now - FLUSH_AFTER)
    told = []

    def others_done():
        told[:] = caplog.messages
        return len(turns) > 2 * len(ERRORS) and not waits(lake) and broken in "".join(told)

    with failing(monkeypatch, place, *ERRORS.values()) as turns:
        working(lake, control, clock, others_done)
    damage = f"{lake.root}/{broken} is damaged (its SHA-256 differs); restore it from a backup."
    assert sorted(told) == sorted([*ERRORS, damage])


def test_a_recurring_problem_is_logged_again(lake, control, clock, hasty, monkeypatch, caplog):
    keep(lake, "/a", at=NOW - FLUSH_AFTER)
    turns = itertools.count(1)

    def flush(lake):
        turn = next(turns)
        if turn in (1, 2, 3, 5):
            raise OSError(28, "No space left on device")
        if turn > 5:
            flush_all(lake)

    flush_all = upkeep.flush_all
    monkeypatch.setattr(upkeep, "flush_all", flush)
    working(lake, control, clock, lambda: not waits(lake))
    assert caplog.messages == ["[Errno 28] No space left on device"] * 2
    assert paths(lake) == {"/a": 1}


# Shutdown


@pytest.mark.parametrize("busy", ["flush", "merge"])
def test_shutdown_waits_for_running_work_and_flushes_new_visits(lake, made, hasty, monkeypatch, busy):
    if busy == "flush":
        keep(lake, "/a", at=NOW - FLUSH_AFTER)
    else:
        for _ in range(2):
            land(lake, "acme", [visit(path="/a")])
    expected = paths(lake) or {"/a": 1}
    owner, name = (lake.manifest.pending, "land") if busy == "flush" else (lake.manifest, "replace")
    original, begun, go_on = getattr(owner, name), threading.Event(), threading.Event()

    def slow(*args):
        begun.set()
        if threading.current_thread() is not threading.main_thread():
            assert go_on.wait(60)
        original(*args)

    monkeypatch.setattr(owner, name, slow)

    async def work():
        chores = made()
        chores.begin()
        while not begun.is_set():
            await asyncio.sleep(0.005)
        keep(lake, "/b")
        ending = asyncio.create_task(chores.end())
        await asyncio.sleep(0.05)
        assert not ending.done()
        go_on.set()
        await ending

    asyncio.run(work())
    assert (waits(lake), paths(lake)) == (0, {**expected, "/b": 1})


def test_shutdown_ends_the_maintenance_processes(chores):
    asyncio.run(chores.end())
    for process in (chores._process, chores._merging_process):
        with pytest.raises(Conflict, match="merge_day was interrupted"):
            process.run(merge_day, "acme", "2026-03-03", NOW.isoformat(), "0")


def test_visits_unflushed_on_a_full_disk_are_flushed_later(lake, control, clock, monkeypatch, caplog):
    with failing(monkeypatch, "data.store.landing.write_parquet", OSError(28, "No space left on device")):
        working(lake, control, clock, lambda: True, lambda: keep(lake, "/a"))
    assert caplog.messages == ["[Errno 28] No space left on device"]
    assert (waits(lake), paths(lake)) == (1, {})
    working(lake, control, clock, lambda: True, lambda: keep(lake, "/b"))
    assert (waits(lake), paths(lake)) == (0, {"/a": 1, "/b": 1})

"""Retention: the expired days of each organization leave no trace in the lake's folder."""

import shutil
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from data.ingest.importer import Importer, Options
from data.manifest.logs import Batch
from data.store.footers import read_visit_file
from data.tasks.compaction import Compactor
from data.tasks.erasure import delete_files
from data.tasks.retention import (
    ClockDoubtful,
    ExpiredVisits,
    RetentionResult,
    apply_retention,
    apply_retention_unattended,
    clock_problem,
)
from tests.faults.lakes import line
from tests.support.lakes import dead_files, failing_at, opened, rows_of
from tests.support.manifests import database_of
from tests.support.published import at
from tests.support.visits import land

NOW = datetime(2026, 3, 10, 0, 30, tzinfo=UTC)
SHORTLY = NOW + timedelta(seconds=15)


def days_of(lake, organization="acme"):
    """Return the number of visits on each day."""
    return Counter(row["visited_at"].day for row in rows_of(lake, organization))


def fill(lake, organization, *days):
    land(lake, organization, [at(day, hour) for day in days for hour in (0, 23)])


def there(lake):
    """Return every visit file, except those without visits, which only record removals."""
    files = {path.relative_to(lake.root).as_posix() for path in lake.root.glob("visits/organization=[!_]*/*/*.parquet")}
    return files - {path for (path,) in database_of(lake.manifest).rows("SELECT path FROM files WHERE visits = 0")}


@pytest.mark.parametrize(("days", "first"), [(1, 9), (2, 8), (8, 2), (99_999, 1)])
@pytest.mark.parametrize("now", [NOW, NOW.astimezone(timezone(timedelta(hours=-5)))], ids=["UTC", "the evening before"])
def test_retention_keeps_today_in_utc_and_the_given_days_before(lake, now, days, first):
    fill(lake, "acme", 1, 2, 3, 8, 9, 10)
    left = [day for day in (1, 2, 3, 8, 9, 10) if day >= first]
    retained = apply_retention(lake, days, now)
    assert days_of(lake) == dict.fromkeys(left, 2)
    gone = 6 - len(left)
    assert retained.ended == ([ExpiredVisits("acme", gone, 2 * gone, gone)] if gone else [])
    assert retained.before == NOW.date() - timedelta(days)


NAMES = ("acme", "other", "young")


def test_each_organizations_days_expire_with_one_new_epoch(lake):
    for name, *days in (("acme", 1, 2), ("acme", 2, 9), ("other", 1), ("young", 10)):
        fill(lake, name, *days)
    before = [lake.manifest.files.live(name) for name in NAMES]
    ended = [ExpiredVisits("acme", 2, 6, 3), ExpiredVisits("other", 1, 2, 1)]
    told = apply_retention(lake, 3, NOW, dry_run=True)
    assert (told.ended, told.dead, dead_files(lake)) == (ended, [], {})
    assert [lake.manifest.files.live(name) for name in NAMES] == before
    for wanted in (ended, []):
        assert apply_retention(lake, 3, NOW).ended == wanted
        assert [days_of(lake, name) for name in NAMES] == [{9: 2}, {}, {10: 2}]
        assert [lake.manifest.organizations.epoch(name) for name in NAMES] == [1, 1, 0]


def test_files_of_expired_days_are_deleted_by_the_next_sweep(lake):
    for _ in range(2):
        fill(lake, "acme", 1, 8)
    Compactor(lake, lambda: NOW).run()
    compacted = dead_files(lake)
    retained = apply_retention(lake, 3, NOW)
    assert {path for path, moment in dead_files(lake).items() if moment <= SHORTLY} == set(retained.dead)
    assert {path for path in compacted if "day=2026-03-01" in path} < set(retained.dead)
    assert (len(compacted), len(retained.dead)) == (4, 3)
    for now, left in ((SHORTLY - timedelta(seconds=1), 6), (SHORTLY, 3)):
        Compactor(lake, lambda: now).sweep()  # noqa: B023
        assert len(there(lake)) == left
    assert apply_retention(lake, 3, NOW) == RetentionResult(date(2026, 3, 7), [], [])


def test_a_second_run_writes_nothing_new(lake):
    for name in ("acme", "other"):
        fill(lake, name, 1, 2, 9)
    unknown_copy(lake, "acme")
    apply_retention(lake, 3, NOW)

    def state():
        tables = [
            database_of(lake.manifest).rows(f"SELECT * FROM {name}")
            for name in ("files", "epochs", "batches", "rollups")
        ]
        return tables, {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in lake.root.rglob("*.parquet")}

    for sweep in (lambda: None, Compactor(lake, lambda: SHORTLY).sweep):
        sweep()
        before = state()
        for later in (1, 900):
            assert apply_retention(lake, 3, NOW + timedelta(seconds=later)).ended == []
            assert state() == before


def test_retention_does_not_wait_for_an_import(lake):
    fill(lake, "acme", 1)
    with opened(lake.root) as other, other.import_lock():
        assert apply_retention(lake, 3, NOW).ended == [ExpiredVisits("acme", 1, 2, 1)]
        fill(other, "acme", 2)
    assert days_of(lake) == {2: 2}
    assert apply_retention(lake, 3, NOW).ended == [ExpiredVisits("acme", 1, 2, 1)]


def test_a_file_that_another_program_replaces_is_left_to_it(lake, monkeypatch):
    fill(lake, "acme", 1, 2)
    exchange, calls = lake.manifest.replace, []

    def beaten(*args):
        calls.append(args)
        if len(calls) == 1:  # since another program expires the first file in between
            with database_of(lake.manifest).transaction() as db:
                db.execute("UPDATE files SET deletable_at = '9999' WHERE id = 1")
        exchange(*args)

    monkeypatch.setattr(lake.manifest, "replace", beaten)
    assert apply_retention(lake, 3, NOW).ended == [ExpiredVisits("acme", 1, 2, 1)]
    assert (len(calls), days_of(lake)) == (2, {})
    assert set(dead_files(lake).values()) == {SHORTLY}


def test_a_failed_retention_is_finished_by_the_next_run(lake):
    for name in ("acme", "other"):
        fill(lake, name, 1, 2, 9)
    with failing_at(lake.manifest, "replace", 2):
        apply_retention(lake, 3, NOW)
    assert [days_of(lake, name) for name in ("acme", "other")] == [{9: 2}, {1: 2, 2: 2, 9: 2}]
    retained = apply_retention(lake, 3, NOW)
    assert retained.ended == [ExpiredVisits("other", 2, 4, 2)]
    delete_files(lake, retained.dead, NOW)
    assert there(lake) == {file.path for name in ("acme", "other") for file in lake.manifest.files.live(name)}


def test_an_organization_without_visits_is_kept(lake):
    assert apply_retention(lake, 1, NOW) == RetentionResult(date(2026, 3, 9), [], [])
    fill(lake, "acme", 1)
    retained = apply_retention(lake, 3, NOW)
    delete_files(lake, retained.dead, NOW)
    assert lake.manifest.organizations.names() == ["acme"]
    assert isinstance(lake.manifest.logs.batches("acme", "")[0], Batch)


# Unknown files, which are not in the manifest


def unknown_copy(lake, organization, folder="unknown"):
    """Copy an organization's first live file to a name that the manifest does not know; return the copy's path."""
    path = lake.manifest.files.live(organization)[0].path
    copy = lake.root / folder / path.removeprefix("visits/").replace(".parquet", "-0.parquet")
    copy.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(lake.root / path, copy))


@pytest.mark.parametrize("folder", ["unknown", "visits"])
def test_expired_unknown_files_lose_visits_but_keep_their_record(lake, folder):
    fill(lake, "acme", 9)
    young = unknown_copy(lake, "acme", folder)
    fill(lake, "acme", 1)
    fill(lake, "other", 2)
    copies = [unknown_copy(lake, name, folder) for name in ("acme", "other")]
    footers = [read_visit_file(path).footer for path in copies]
    told = [ExpiredVisits("acme", 1, 4, 2), ExpiredVisits("other", 1, 4, 2)]
    assert apply_retention(lake, 3, NOW, dry_run=True).ended == told
    assert [read_visit_file(path).visits for path in (young, *copies)] == [2, 2, 2]
    assert apply_retention(lake, 3, NOW).ended == told
    assert [read_visit_file(path).visits for path in (young, *copies)] == [2, 0, 0]
    assert [read_visit_file(path).footer for path in copies] == footers


def test_unreadable_unknown_files_for_old_days_are_deleted(lake):
    fill(lake, "acme", 1)
    copy = unknown_copy(lake, "acme")
    copy.write_bytes(copy.read_bytes()[:-9])
    assert apply_retention(lake, 3, NOW).ended == [ExpiredVisits("acme", 1, 2, 2)]
    assert not copy.exists()


def test_unknown_files_of_unregistered_organizations_expire(lake):
    fill(lake, "acme", 1)
    copy = unknown_copy(lake, "acme")
    moved = Path(str(copy).replace("=acme", "=lost"))
    moved.parent.mkdir(parents=True)
    copy.rename(moved)
    assert apply_retention(lake, 3, NOW).ended == [ExpiredVisits("acme", 1, 2, 1), ExpiredVisits("lost", 1, 2, 1)]
    assert read_visit_file(moved).visits == 0


# A clock that may be ahead


def test_visits_in_unknown_files_confirm_the_clock(lake):
    fill(lake, "acme", 1)
    old = unknown_copy(lake, "acme")
    with database_of(lake.manifest).transaction() as db:
        db.execute("DELETE FROM files")
    assert "newest visit is from 2026-03-01" in clock_problem(lake, NOW)
    young = Path(str(old).replace("day=2026-03-01", "day=2026-03-09"))
    young.parent.mkdir(parents=True)
    old.rename(young)
    assert clock_problem(lake, NOW) == ""


def test_a_clock_a_day_ahead_of_all_records_is_a_problem(lake):
    assert clock_problem(lake, NOW) == ""
    fill(lake, "acme", 1, 8)
    fill(lake, "other", 9)
    for hours in (0, 23):
        assert clock_problem(lake, NOW + timedelta(hours=hours)) == ""
    assert clock_problem(lake, NOW + timedelta(1.5)) == (
        "the clock says 2026-03-11, but the newest visit is from 2026-03-09, and old days were never deleted"
    )
    apply_retention(lake, 3, NOW + timedelta(days=1.5))
    assert clock_problem(lake, NOW + timedelta(days=2.4)) == ""
    assert clock_problem(lake, NOW + timedelta(days=2.6)).endswith("and old days were last deleted on 2026-03-11")


def test_visits_and_runs_in_the_future_do_not_confirm_the_clock(lake):
    fill(lake, "acme", 5, 31)
    apply_retention(lake, 3, NOW + timedelta(days=300), dry_run=True)
    assert "never deleted" in clock_problem(lake, NOW)
    fill(lake, "acme", 30)
    apply_retention(lake, 99, NOW + timedelta(days=300))
    fill(lake, "acme", 5)
    assert "newest visit is from 2026-03-05" in clock_problem(lake, NOW)


@pytest.mark.parametrize(
    ("hours", "deletes"),
    [
        ([0, 1, 23], False),
        ([0, 24], True),
        ([0, 48.1], False),  # the clock was too fast, or nothing ran: it is doubted from then on
        ([0, 48.1, 72.2], True),
        ([8760, 0, 1], False),  # it was set back
        ([8760, 8761, 0, 24.5], True),
    ],
)
def test_without_a_terminal_a_later_run_must_confirm_the_clock(lake, hours, deletes):
    fill(lake, "acme", 1)
    *doubtful, last = (NOW + timedelta(days=30, hours=later) for later in (*hours, *([] if deletes else [hours[-1]])))
    for now in doubtful:
        with pytest.raises(ClockDoubtful, match=r"traffic retain --days 3 --yes --trust-clock"):
            apply_retention_unattended(lake, 3, now)
    if deletes:
        apply_retention_unattended(lake, 3, last)
        fill(lake, "acme", 2)
        apply_retention_unattended(lake, 3, last + timedelta(minutes=15))
    assert days_of(lake) == ({} if deletes else {1: 2})


@pytest.mark.parametrize("cut", [1, 6])
def test_a_deleted_unfinished_line_does_not_return_once_complete(lake, tmp_path, cut):
    log, first = tmp_path / "a.log", datetime(2026, 3, 1, 12)
    whole = line("/a", when=first) + line("/cut", when=first)
    for text, there in ((whole[:-cut], {1: 2}), (whole, {}), (whole + line("/new", when=datetime(2026, 3, 9)), {9: 1})):
        log.write_text(text)
        Importer(lake).run(log, Options("acme"))
        assert days_of(lake) == there
        apply_retention(lake, 3, NOW)

"""The status of a lake has exact numbers and takes little time, however many files there are."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from data.errors import LakeDamaged
from data.ingest.visitor_ids import daily_salts
from data.manifest.files import LandedFile, insert_files
from data.manifest.policies import RECLASSIFYING
from data.manifest.statistics import OrganizationStatus
from data.recovery.verification import verify_lake
from data.rules.lake_tables import rules_version
from data.rules.tables import IpList
from data.signals import BITS
from data.store import pending, status
from data.store.ip_list_files import refresh
from data.store.lake import Lake
from data.store.status import LakeStatus, status_of
from data.tasks.retention import apply_retention
from tests.support.lakes import files_of
from tests.support.manifests import database_of
from tests.support.releases import CHECKED
from tests.support.visits import land, packed, visit

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
TODAY = NOW.replace(tzinfo=None)


def size_of(lake, organization):
    return sum(path.stat().st_size for path in (lake.root / "visits" / f"organization={organization}").glob("*/*"))


def at(*days_ago, hour=1):
    """Return a visit half a minute past the hour for each of these numbers of days ago."""
    moments = [TODAY - timedelta(days, hours=12 - hour, seconds=-30) for days in days_ago]
    return [visit(visited_at=moment) for moment in moments]


def add_pending(lake, organization, visits, since):
    pending.enqueue(lake.manifest, [(organization, packed(visits))], since)


def test_the_status_creates_no_salts(lake):
    status_of(lake, NOW)
    assert not lake.salts.exists()


def test_the_status_of_a_new_lake_is_empty(lake):
    found = status_of(lake, NOW)
    ((version,),) = database_of(lake.manifest).rows("PRAGMA user_version")
    assert found == LakeStatus(
        version,
        "",
        {},
        OrganizationStatus(),
        0,
        0,
        None,
        None,
        None,
        None,
        rules_version(),
        f"shipped, checked {CHECKED}",
        reclassify_due=False,
    )


def test_a_status_counts_visits_that_are_not_set_aside(lake):
    marked = [visit(signals=bits) for bits in (None, BITS["https"], BITS["file"], BITS["own_rule"] | BITS["file"])]
    land(lake, "acme", marked)
    counted = [status_of(lake, NOW).organizations["acme"].counted_visits]
    lake.manifest.exclusions.switch_files("acme", aside=True)
    counted += [status_of(lake, NOW).organizations["acme"].counted_visits]
    assert counted == [3, 2]


def test_a_damaged_file_makes_the_counted_visits_unknown(lake):
    land(lake, "acme", at(2))
    (file,) = files_of(lake, "acme")
    (lake.root / file.path).write_bytes(b"PAR1")
    found = status_of(lake, NOW)
    assert (found.organizations["acme"].counted_visits, found.total.counted_visits) == (None, None)


def test_the_status_has_numbers_by_organization_and_in_total(lake):
    for name, visits in (
        ("acme", at(5, 5, 3, hour=4) + at(0, hour=7)),
        ("acme", at(5, hour=2) + at(0, 0, 0, hour=9)),
        ("acme", at(4)),
        ("other", at(2, 2)),
    ):
        land(lake, name, visits)
    for name, visits, seconds in (("acme", 2, 4), ("acme", 1, 7), ("new", 1, 2)):
        add_pending(lake, name, at(0) * visits, NOW - timedelta(seconds=seconds))
    found = status_of(lake, NOW)
    acme = OrganizationStatus(
        files=6,
        visits=9,
        bytes=size_of(lake, "acme"),
        first_day=date(2026, 3, 5),
        last_day=date(2026, 3, 10),
        first_visit_at=datetime(2026, 3, 5, 2, 0, 30, tzinfo=UTC),
        last_visit_at=datetime(2026, 3, 10, 9, 0, 30, tzinfo=UTC),
        open_files=2,
        unmerged_days=1,
        unjudged_days=3,
        pending_visits=3,
        oldest_pending_at=NOW - timedelta(seconds=7),
        counted_visits=9,
    )
    other_at = datetime(2026, 3, 8, 1, 0, 30, tzinfo=UTC)
    days = other_at.date(), other_at.date()
    other = OrganizationStatus(
        1, 2, size_of(lake, "other"), *days, other_at, other_at, unjudged_days=1, counted_visits=2
    )
    new = OrganizationStatus(pending_visits=1, oldest_pending_at=NOW - timedelta(seconds=2))
    assert list(found.organizations.items()) == [("acme", acme), ("new", new), ("other", other)]
    size = acme.bytes + other.bytes
    assert found.total == replace(
        acme, files=7, visits=11, bytes=size, pending_visits=4, unjudged_days=4, counted_visits=11
    )


def test_an_unfinished_line_does_not_make_a_day_unmerged(lake):
    for _ in range(2):
        land(lake, "acme", at(0) + at(2))
    for now, files in ((NOW, 2), ("2026-03-11T08:59:59+09:00", 2), ("2026-03-11T09:00:00+09:00", 0)):
        assert status_of(lake, datetime.fromisoformat(str(now))).total.open_files == files
    assert status_of(lake, NOW).total.unmerged_days == 1
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE files SET unfinished_of = (SELECT min(id) FROM batches) WHERE id > 2")
    assert status_of(lake, NOW).total.unmerged_days == 0


def test_dead_files_are_counted_separately(lake):
    land(lake, "acme", at(3, 2, 1))
    land(lake, "other", at(3))
    (other,) = lake.manifest.files.live("other")
    dead = [*lake.manifest.files.live("acme")[:2], other]
    for files in (dead[:2], [other]):
        lake.manifest.replace(files, list, RECLASSIFYING, now=NOW, grace=timedelta(1))
    found = status_of(lake, NOW)
    assert (found.dead_files, found.dead_bytes) == (3, sum(file.size for file in dead))
    assert (found.total.files, found.total.visits) == (1, 1)
    assert found.organizations["other"] == OrganizationStatus()


def test_the_oldest_check_ignores_dead_files(lake):
    land(lake, "acme", at(4, 3, 2, 1))
    one, two, three, _ = sorted(lake.manifest.files.live("acme"), key=lambda file: file.day)
    for file, days in ((one, 9), (two, 8), (three, 7)):
        lake.manifest.files.refresh_stat(file.path, 1, 1, NOW - timedelta(days))
    lake.manifest.replace([one], list, RECLASSIFYING, now=NOW, grace=timedelta(0))
    assert status_of(lake, NOW).oldest_check_at == NOW - timedelta(8)


def test_only_the_age_of_the_oldest_salt_is_reported(lake):
    salts = daily_salts(lake.salts, [date(2026, 3, 9)], NOW - timedelta(hours=30))
    salts |= daily_salts(lake.salts, [date(2026, 3, 10)], NOW)
    found = status_of(lake, NOW)
    assert found.oldest_salt_at == NOW - timedelta(hours=30)
    assert not any(salt in repr(found) for salt in salts.values())
    with closing(sqlite3.connect(lake.salts, isolation_level=None)) as db:
        db.execute("DELETE FROM salts")
    assert status_of(lake, NOW).oldest_salt_at is None
    lake.salts.write_bytes(b"no database" * 99)
    assert status_of(lake, NOW).oldest_salt_at is None


@pytest.mark.parametrize(
    "record",
    [
        lambda lake, ahead: daily_salts(lake.salts, [date(2026, 3, 9)], ahead),
        lambda lake, ahead: add_pending(lake, "acme", at(0), ahead),
        lambda lake, ahead: apply_retention(lake, 3, ahead),
    ],
    ids=["salts", "pending", "retention"],
)
def test_the_latest_time_recorded_by_a_fast_clock_is_reported(lake, record):
    ahead = NOW + timedelta(days=365)
    record(lake, ahead)
    assert status_of(lake, NOW).clock_was_at == ahead
    assert status_of(lake, ahead).clock_was_at is None


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: path.write_bytes(b"no Parquet file"),
        lambda path: path.write_bytes(path.read_bytes().replace(b"visited_at", b"\xffisited_at")),
    ],
    ids=["missing", "overwritten", "another name of a column in its footer"],
)
def test_a_damaged_file_makes_only_its_visit_times_unknown(lake, damage):
    land(lake, "acme", at(5))
    (first,) = lake.manifest.files.live("acme")
    damage(lake.root / first.path)
    total = status_of(lake, NOW).total
    assert (total.visits, total.first_visit_at, total.last_visit_at) == (1, None, None)
    assert [path for path, _ in verify_lake(lake).findings] == [first.path]
    land(lake, "acme", at(1, 1, hour=6))
    total = status_of(lake, NOW).total
    assert (total.files, total.first_day, total.last_day) == (2, date(2026, 3, 5), date(2026, 3, 9))
    assert total.last_visit_at == datetime(2026, 3, 9, 6, 0, 30, tzinfo=UTC)


def test_the_status_reads_few_of_ten_thousand_files(lake, monkeypatch):
    days = [date(2025, 1, 1) + timedelta(day) for day in range(100)]
    names = [f"org{number}" for number in range(100)]
    files = [LandedFile(name, day, f"{name}/{day}", 7, 1_000, "", 1, 1, NOW) for name in names for day in days]
    with database_of(lake.manifest).transaction() as db:
        insert_files(db, files)
    read = []
    monkeypatch.setattr(status, "_span", lambda path: read.append(path) or (NOW, NOW))
    total = status_of(lake, NOW).total
    assert (total.files, total.visits, total.bytes) == (10_000, 70_000, 10_000_000)
    assert (len(read), total.first_visit_at) == (200, NOW)
    monkeypatch.setattr(status, "MAX_FOOTERS", 199)
    total = status_of(lake, NOW).total
    assert (len(read), total.first_visit_at, total.last_visit_at) == (200, None, None)
    assert (total.first_day, total.last_day) == (days[0], days[-1])


def test_the_status_shows_when_lists_were_last_refreshed(lake):
    for name, days in (("one", 3), ("two", 2)):
        row = IpList(name, "One", "https://one.example", "text", evidence="", checked=date(2026, 3, 1))
        list(refresh(lake, [row], lambda row: b"8.8.8.0/24", NOW - timedelta(days)))
    (lake.ip_lists / "broken.json").write_text("[]")
    assert status_of(lake, NOW).agents_refreshed_at == NOW - timedelta(2)


def test_visits_classified_by_older_rules_must_be_reclassified(lake):
    for rules, is_due in ((rules_version(), False), ("000000000000", True)):
        land(lake, "acme", [{**row, "rules_version": rules} for row in at(1)])
        assert status_of(lake, NOW).reclassify_due == is_due


def test_a_status_does_not_wait_for_a_writer(lake):
    land(lake, "acme", at(1))
    with closing(Lake(lake.root).manifest) as other, database_of(other).transaction() as db:
        db.execute("DELETE FROM files")
        assert status_of(lake, NOW).total.files == 1


def test_the_status_reports_a_damaged_manifest(lake):
    with database_of(lake.manifest).transaction() as db:
        db.execute("DROP TABLE epochs")
    with pytest.raises(LakeDamaged, match=str(lake.root)):
        status_of(lake, NOW)

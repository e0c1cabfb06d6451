"""The manifest's guarantees for imports and files."""

import re
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import count

import pytest
from msgspec.structs import replace as changed

from data.errors import Conflict, LakeDamaged
from data.manifest.clock import format_time
from data.manifest.database import MIGRATIONS
from data.manifest.files import LandedFile
from data.manifest.logs import Batch
from data.manifest.manifest import Manifest
from data.manifest.read_only import open_database_read_only
from tests.support.manifests import database_of

DAY = date(2026, 3, 1)
NOW = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
BATCH = Batch(0, "", "aa" * 32, 1000, 990, 7, "combined", format_time(NOW))
FILE = LandedFile("acme", DAY, "visits/organization=acme/day=2026-03-01/1.parquet", 7, 4096, "bb" * 32, 11, 22, NOW)
IDS = count(100)
NEWEST = len(MIGRATIONS)
NEWER = (*MIGRATIONS, "CREATE TABLE more (id);")
BEFORE = f"manifest.sqlite.before-{NEWEST}"


@pytest.fixture
def manifest(tmp_path):
    manifest = Manifest(tmp_path / "manifest.sqlite")
    yield manifest
    manifest.close()


@pytest.fixture
def older(tmp_path, monkeypatch):
    """The path of a manifest with one batch and its file; the program that opens it has one more migration."""
    path = tmp_path / "manifest.sqlite"
    with closing(Manifest(path)) as manifest:
        land(manifest)
    monkeypatch.setattr("data.manifest.database.MIGRATIONS", NEWER)
    return path


def version_of(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def file_of(day=DAY, name="1", **changes):
    return replace(FILE, day=day, path=f"visits/organization=acme/day={day}/{name}.parquet", **changes)


def commit(manifest, batch=BATCH, publish=list, continues=None, organization="acme"):
    """Commit a batch, giving it a new id if it has none, as a landing does."""
    manifest.land(organization, batch if batch.id else changed(batch, id=next(IDS)), continues, publish)


def land(manifest, batch=BATCH, files=(FILE,), continues=None, organization="acme"):
    commit(manifest, batch, lambda: list(files), continues, organization)
    return manifest.logs.batches(organization, batch.domain)


def live(manifest, start=DAY, end=DAY, organization="acme"):
    return manifest.files.live(organization, start, end)


def test_a_copy_of_a_read_only_manifest_is_upgraded(tmp_path, older):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with closing(open_database_read_only(older, NEWER, scratch)) as db:
        assert db.execute("SELECT count(*) FROM files JOIN more").fetchone() == (0,)
    assert version_of(older) == NEWEST
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("manifest")] == ["manifest.sqlite"]


def test_opening_waits_while_another_process_creates_a_manifest(tmp_path, monkeypatch):
    with closing(sqlite3.connect(tmp_path / "manifest.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("data.manifest.schema.time.sleep", lambda _: other.execute("COMMIT"))
        Manifest(tmp_path / "manifest.sqlite").close()
        assert not other.in_transaction


def test_a_new_manifest_has_the_newest_version(tmp_path, caplog):
    for expected in ([], ["acme"]):
        with closing(Manifest(tmp_path / "manifest.sqlite")) as manifest:
            assert manifest.organizations.names() == expected
            if not expected:
                land(manifest)
        assert version_of(tmp_path / "manifest.sqlite") == NEWEST
    assert [file.name for file in tmp_path.iterdir()] == ["manifest.sqlite"]
    assert not caplog.records


def test_a_manifest_from_a_newer_program_is_rejected_unchanged(tmp_path):
    path = tmp_path / "manifest.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {NEWEST + 1}")
    with pytest.raises(LakeDamaged, match="upgrade the program"):
        Manifest(path)
    assert version_of(path) == NEWEST + 1


def test_a_manifest_that_is_not_a_database_counts_as_damaged(tmp_path):
    (tmp_path / "file").write_bytes(b"these are not the bytes of a database" * 100)
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder"):
        with pytest.raises(LakeDamaged, match=f"{tmp_path}/{name} cannot be used"):
            Manifest(tmp_path / name)


def test_a_batch_is_not_registered_if_moving_files_fails(manifest):
    def full():
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        commit(manifest, BATCH, full)
    assert manifest.logs.batches("acme", "") == []
    assert land(manifest)


def test_a_batch_is_recorded_as_given(manifest):
    (batch,) = land(manifest)
    assert changed(batch, id=0) == BATCH


def test_the_organization_of_a_batch_is_listed(manifest):
    land(manifest)
    assert manifest.organizations.names() == ["acme"]


def test_content_is_recorded_once_even_by_several_programs(tmp_path, manifest):
    with closing(Manifest(tmp_path / "manifest.sqlite")) as other:
        (batch,) = land(other)
    with pytest.raises(sqlite3.IntegrityError):
        land(manifest, files=[file_of(name="2")])
    assert manifest.logs.batches("acme", "") == [batch]
    assert live(manifest) == [FILE]


@pytest.mark.parametrize("domains", [("", "a.example"), ("a.example", ""), ("a.example", "b.example")])
def test_content_cannot_be_registered_with_two_domains(manifest, domains):
    first, second = (changed(BATCH, domain=domain) for domain in domains)
    land(manifest, first)
    (shorter,) = land(manifest, changed(second, id=7, sha256="shorter", size=10), [file_of(name="2")])
    for batch, continues in ((second, None), (changed(second, id=7), shorter)):
        with pytest.raises(Conflict, match=re.escape(domains[0] or "no domain")):
            commit(manifest, batch, continues=continues)
    assert manifest.logs.batches("acme", second.domain) == [shorter]
    commit(manifest, second, organization="other")


def test_content_without_visits_may_have_many_domains(manifest):
    for domain in ("", "a.example"):
        commit(manifest, changed(BATCH, domain=domain, visits=0))
    assert [batch.domain for batch in manifest.logs.batches("acme")] == ["", "a.example"]


def test_the_largest_batches_of_a_domain_come_first(manifest):
    for number, size in enumerate((50, 2000, 700)):
        commit(manifest, changed(BATCH, sha256=str(number), size=size))
    commit(manifest, changed(BATCH, domain="a.example"))
    assert [batch.size for batch in manifest.logs.batches("acme", "")] == [2000, 700, 50]
    assert [batch.size for batch in manifest.logs.batches("acme", "a.example")] == [1000]
    assert manifest.logs.batches("other", "") == []


def test_live_files_are_filtered_by_organization(manifest):
    other = replace(FILE, organization="other", path="visits/organization=other/day=2026-03-01/1.parquet")
    land(manifest, files=[other], organization="other")
    assert (live(manifest), live(manifest, organization="other")) == ([], [other])
    assert live(manifest, organization="othe%") == []


def test_live_files_are_filtered_by_day(manifest):
    days = [date(2025, 12, 31), date(2026, 1, 1), date(2026, 1, 2), date(2026, 10, 1)]
    land(manifest, files=[file_of(day) for day in days])
    assert [file.day for file in live(manifest, days[1], days[2])] == days[1:3]
    assert [file.day for file in live(manifest, days[0], days[3])] == days
    assert live(manifest, date(2026, 1, 3), date(2026, 9, 30)) == []
    assert live(manifest, days[3], days[0]) == []


def test_organizations_are_found_by_their_landed_logs(manifest):
    for name in ("other", "acme"):
        path = f"visits/organization={name}/day=2026-03-01/1.parquet"
        land(manifest, files=[replace(FILE, organization=name, path=path)], organization=name)
    assert manifest.organizations.names() == ["acme", "other"]


def test_a_continuation_replaces_only_its_own_unfinished_file(manifest):
    unfinished, of_another = (file_of(name=str(batch), unfinished_of=batch) for batch in (5, 6))
    finished = file_of(name="7")
    (first,) = land(manifest, changed(BATCH, id=5), [FILE, unfinished])
    land(manifest, changed(BATCH, id=6, sha256="cc" * 32), [of_another])
    assert live(manifest) == [FILE, unfinished, of_another]
    land(manifest, changed(BATCH, sha256="dd" * 32, size=2000), [finished], continues=first)
    assert live(manifest) == [FILE, of_another, finished]


def test_a_read_never_waits_for_reads_or_writes(manifest):
    """P18: every answer begins with this read, on the thread that serves all clients."""
    begun, is_read = threading.Event(), threading.Event()

    def wait():
        begun.set()
        is_read.wait(60)
        return is_read.is_set()

    database = database_of(manifest)
    (slow,) = database._readers.idle
    slow.create_function("wait", 0, wait)
    with ThreadPoolExecutor(1) as pool, database.transaction():
        reading = pool.submit(database.rows, "SELECT wait()")
        begun.wait()
        assert manifest.organizations.epoch("acme") == 0
        assert manifest.files.live("acme") == []
        is_read.set()
        assert reading.result() == [(1,)]


# Copies before a migration


def test_an_older_manifest_is_copied_before_it_is_upgraded(tmp_path, older, caplog):
    with closing(Manifest(older)) as manifest:
        assert live(manifest) == [FILE]
        assert database_of(manifest).rows("SELECT * FROM more") == []
    copy = tmp_path / BEFORE
    assert sorted(file.name for file in tmp_path.iterdir()) == ["manifest.sqlite", copy.name]
    assert (version_of(copy), version_of(older)) == (NEWEST, NEWEST + 1)
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT organization FROM batches").fetchall() == [("acme",)]
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert [record.getMessage() for record in caplog.records] == [
        f"{older} is being upgraded; a copy of the old version is in {copy}."
    ]


def test_a_copy_begun_by_a_killed_program_is_recreated(tmp_path, older):
    begun = tmp_path / f"{BEFORE}.partial"
    begun.write_bytes(b"half a page")
    Manifest(older).close()
    assert version_of(tmp_path / BEFORE) == NEWEST
    assert not begun.exists()


@pytest.mark.parametrize("reason", ["it cannot be copied", "a statement fails"])
def test_a_migration_that_fails_changes_nothing(tmp_path, older, monkeypatch, reason):
    if reason == "a statement fails":
        broken = (*MIGRATIONS, "CREATE TABLE more (id);\nCREATE NONSENSE")
        monkeypatch.setattr("data.manifest.database.MIGRATIONS", broken)
    else:
        (tmp_path / BEFORE).mkdir()
    with pytest.raises(LakeDamaged, match="cannot be used"):
        Manifest(older)
    assert version_of(older) == NEWEST
    with closing(sqlite3.connect(older)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)


def test_simultaneous_upgrades_copy_the_manifest_once(tmp_path, older, caplog):
    with ThreadPoolExecutor(8) as pool:
        for manifest in pool.map(Manifest, [older] * 8):
            manifest.close()
    assert (version_of(older), version_of(tmp_path / BEFORE)) == (NEWEST + 1, NEWEST)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("what", ["moved", "deleted", "replaced"])
def test_nothing_is_written_to_a_moved_or_replaced_manifest(tmp_path, manifest, what):
    path, away = tmp_path / "manifest.sqlite", tmp_path / "away"
    land(manifest)
    path.rename(away)
    if what == "deleted":
        away.unlink()
    if what == "replaced":
        shutil.copy(away, path)
    with pytest.raises(OSError, match="moved or replaced"), database_of(manifest).transaction():
        pass
    assert len(manifest.logs.batches("acme")) == 1
    if what == "moved":
        away.rename(path)
        with database_of(manifest).transaction() as db:
            assert db.in_transaction

"""The same statements register, verify, replace and forget the files of visits, rollups and links."""

from datetime import UTC, date, datetime, timedelta

import pytest

from data.disk.files import RegisteredFile
from data.manifest.kinds import COLUMNS, KINDS, expire, expire_of_day, insert, live_of_kind
from data.manifest.manifest import Manifest
from tests.support.manifests import database_of

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
DAY = date(2026, 3, 1)
FILE = RegisteredFile("file.parquet", 10, "ab", 1, 2)
OWN = {"day": str(DAY), "month": str(DAY), "visits": 3, "unfinished_of": None, "schema_version": 1}


@pytest.fixture
def manifest(tmp_path):
    opened = Manifest(tmp_path / "manifest.sqlite")
    yield opened
    opened.close()


@pytest.fixture(params=KINDS, ids=[kind.table for kind in KINDS])
def kind(request, manifest):
    """A kind with one registered file."""
    row = ["acme", *FILE, "2026-03-10", *(OWN.get(name, 0) for name in request.param.own_columns)]
    with database_of(manifest).transaction() as db:
        insert(db, request.param, [row])
    return request.param


def columns_of(manifest, table):
    rows = database_of(manifest).rows("SELECT name FROM pragma_table_info(?)", [table])
    return {name for (name,) in rows}


def test_each_table_of_files_has_a_kind(manifest):
    tables = database_of(manifest).rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert {name for (name,) in tables if "deletable_at" in columns_of(manifest, name)} == {
        kind.table for kind in KINDS
    }


def test_a_kind_has_all_columns_of_its_table(manifest, kind):
    assert columns_of(manifest, kind.table) - {"id"} == {*COLUMNS, "deletable_at", *kind.own_columns}


def test_a_registered_file_is_live(manifest, kind):
    assert live_of_kind(database_of(manifest), kind) == [FILE]
    assert manifest.files.is_live(FILE.path)


def test_a_verified_file_is_not_due_for_a_check(manifest, kind):
    assert live_of_kind(database_of(manifest), kind, before=NOW) == [FILE]
    manifest.files.refresh_stat(FILE.path, 7, 8, NOW)
    assert live_of_kind(database_of(manifest), kind, before=NOW) == []
    assert live_of_kind(database_of(manifest), kind) == [FILE._replace(changed_ns=7, inode=8)]


def test_a_file_expires_once(manifest, kind):
    with database_of(manifest).transaction() as db:
        assert [expire(db, kind, FILE.path, NOW) for _ in range(2)] == [True, False]
    assert manifest.files.deletable(NOW) == [FILE.path]


def test_expiring_a_day_makes_its_file_deletable(manifest, kind):
    with database_of(manifest).transaction() as db:
        expire_of_day(db, kind, "acme", None if kind.day == "NULL" else DAY, NOW)
    assert manifest.files.deletable(NOW) == [FILE.path]


def test_expiring_another_day_leaves_the_file_live(manifest, kind):
    with database_of(manifest).transaction() as db:
        expire_of_day(db, kind, "acme", DAY + timedelta(1), NOW)
    assert manifest.files.is_live(FILE.path)


def test_an_erasure_makes_dead_files_with_visits_deletable_now(manifest, kind):
    with database_of(manifest).transaction() as db:
        expire(db, kind, FILE.path, NOW + timedelta(1))
    expected = [FILE.path] if kind.holds_visits else []
    assert manifest.files.expire_now("acme", None, NOW) == expected
    assert manifest.files.deletable(NOW) == expected


def test_a_live_file_is_not_forgotten(manifest, kind):
    manifest.files.purge([FILE.path])
    assert manifest.files.is_live(FILE.path)


def test_a_dead_file_is_forgotten(manifest, kind):
    with database_of(manifest).transaction() as db:
        expire(db, kind, FILE.path, NOW)
    manifest.files.purge([FILE.path])
    assert not manifest.files.is_registered(FILE.path)

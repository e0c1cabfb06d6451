"""API keys in control.sqlite, which contains no usable secret and can be used by several programs at the same time."""

import re
import shutil
import sqlite3
import stat
import string
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from data import BadInput, LakeDamaged
from service.access.api_keys import ApiKeys, is_well_formed_key
from service.core.control_database import MIGRATIONS, ControlDatabase, opened_control
from tests.support.clock import Clock
from tests.support.control import open_store, owner
from tests.support.tables import examples
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


@pytest.fixture
def keys(control):
    return ApiKeys(control)


@pytest.fixture
def database(lake):
    """The path of the control database."""
    return lake.root / "control.sqlite"


def test_api_keys_with_the_same_name_have_different_secrets(keys):
    assert len({keys.create_key("acme", "same") for _ in range(50)}) == 50


def test_a_key_ends_in_its_checksum(keys):
    for key in (keys.create_key("acme", "same") for _ in range(50)):
        assert re.fullmatch(r"tak_[0-9A-Za-z]{36}", key)
        number = 0
        for digit in key[-6:]:
            number = number * 62 + ALPHABET.index(digit)
        assert number == zlib.crc32(key[4:-6].encode())
        assert is_well_formed_key(key)


def test_a_typo_in_a_key_is_detected(keys):
    key = keys.create_key("acme", "a")
    for place in range(4, len(key)):
        assert not is_well_formed_key(key[:place] + ("a" if key[place] != "a" else "b") + key[place + 1 :])


def test_malformed_keys_are_rejected(keys):
    key = keys.create_key("acme", "a")
    for wrong in ("", "tak_", key[:-1], f"{key}0", f" {key}", key.upper(), key[:20] + "ü" + key[21:]):
        assert not is_well_formed_key(wrong)
        assert owner(keys, wrong) is None


@pytest.mark.parametrize("what", ["moved", "deleted", "replaced"])
def test_a_moved_deleted_or_replaced_database_is_not_written_to(keys, database, tmp_path, what):
    key, away = keys.create_key("acme", "a"), tmp_path / "away"
    database.rename(away)
    if what == "deleted":
        away.unlink()
    if what == "replaced":
        shutil.copy(away, database)
    for write in (lambda: keys.create_key("acme", "b"), lambda: keys.revoke_key(key[:12])):
        with pytest.raises(OSError, match="moved or replaced"):
            write()
    with pytest.raises(OSError, match="moved or replaced"), keys.database.transaction():
        pass
    assert [key.name for key in keys.all_keys()] == ["a"]
    if what == "moved":
        away.rename(database)
        keys.create_key("acme", "b")


@pytest.fixture
def made(keys):
    """The keys of two organizations."""
    return [keys.create_key(*names) for names in (("acme", "first"), ("other", "second"))]


def test_the_secret_of_a_key_is_not_on_disk(made, lake):
    files = [*lake.root.glob("control.sqlite*")]
    assert files
    for file in files:
        content = file.read_bytes()
        assert not any(key.encode() in content or key[12:].encode() in content for key in made)


@pytest.mark.usefixtures("made")
def test_only_the_owner_may_read_the_database(database):
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_keys_are_listed_by_creation_time(keys, made):
    rows = keys.all_keys()
    told = {(row.id, row.organization, row.name, row.revoked_at) for row in rows}
    assert told == {(made[0][:12], "acme", "first", None), (made[1][:12], "other", "second", None)}
    assert [row.created_at for row in rows] == sorted(row.created_at for row in rows)


@pytest.mark.usefixtures("made")
def test_organizations_with_keys_are_listed(keys):
    assert keys.database.organizations_with_keys() == {"acme", "other"}


@pytest.mark.usefixtures("made")
def test_the_last_use_of_a_key_is_not_before_its_creation(keys, database):
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE keys SET created_at = '2026-03-04T10:30:00Z', last_used_at = '2026-03-04T10:00:00Z'")
    assert all(row.last_used_at == row.created_at for row in keys.all_keys())


def test_a_revoked_key_is_rejected_by_every_program(keys, lake):
    key, other = keys.create_key("acme", "a"), keys.create_key("acme", "b")
    with open_store(ApiKeys, lake) as elsewhere:
        assert owner(elsewhere, key) == "acme"
        keys.revoke_key(key[:12])
        assert (owner(elsewhere, key), owner(elsewhere, other)) == (None, "acme")
        assert [row.revoked_at is None for row in elsewhere.all_keys() if row.id == key[:12]] == [False]
    for unknown in (key[:12], "tak_nothing", "", key):
        with pytest.raises(BadInput, match="no active key"):
            keys.revoke_key(unknown)


@examples("written", "stored")
def test_a_key_is_active_until_it_expires(control, written, stored):
    keys = ApiKeys(control, clock := Clock(NOW))
    text = keys.create_key("acme", "a", None, written)
    (key,) = keys.all_keys()
    assert (key.expires_at, key.state, owner(keys, text)) == (stored, "active", "acme")
    if stored:
        clock.now = datetime.fromisoformat(stored) - timedelta(seconds=1)
        assert owner(keys, text) == "acme"
        clock.now += timedelta(seconds=1)
        assert (keys.find(text).state, owner(keys, text)) == ("expired", None)
        keys.revoke_key(key.id)
        assert keys.find(text).state == "revoked"


@examples("written")
def test_an_ambiguous_or_past_expiry_is_rejected(control, written):
    keys = ApiKeys(control, Clock(NOW))
    with pytest.raises(BadInput, match=r"expires_at is .*; it must be a day or time in the future, like"):
        keys.create_key("acme", "a", None, written)
    assert keys.all_keys() == []


@pytest.mark.parametrize("organization", ["", "_seed", "a/b", "../x", "ä", "x" * 65, "a b", "acme\n"])
def test_a_key_needs_a_valid_organization(keys, organization):
    with pytest.raises(BadInput, match="organization"):
        keys.create_key(organization, "a")
    assert (keys.all_keys(), keys.database.organizations_with_keys()) == ([], set())


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "a\x1b[31m", "\u202e", "\0"])
def test_a_key_needs_a_valid_name(keys, name):
    with pytest.raises(BadInput, match="name"):
        keys.create_key("acme", name)
    assert (keys.all_keys(), keys.database.organizations_with_keys()) == ([], set())


def test_an_organization_may_have_64_characters(keys):
    assert owner(keys, keys.create_key("x" * 64, "test")) == "x" * 64


def test_the_name_of_a_key_may_have_100_characters(keys):
    assert owner(keys, keys.create_key("acme", "Ü" * 100)) == "acme"


def test_reads_do_not_wait_for_a_blocked_write(keys, database):
    """P18: writers wait their turn; reads do not wait."""
    key, other = keys.create_key("acme", "a"), keys.create_key("acme", "b")
    with ThreadPoolExecutor(3) as pool, closing(sqlite3.connect(database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        keys.record_use(key)
        writes = [pool.submit(keys.create_key, "acme", "c"), pool.submit(keys.revoke_key, other[:12])]
        reads = [pool.submit(owner, keys, key) for _ in range(20)]
        assert [read.result() for read in reads] == ["acme"] * 20
        assert len(keys.all_keys("acme")) == 2
        assert not any(write.done() for write in writes)
        holder.execute("COMMIT")
    assert {row.name for row in keys.all_keys() if not row.revoked_at} == {"a", "c"}


def test_concurrent_programs_all_start_on_a_new_lake(lake, database):
    """A script may start `traffic serve` and `traffic keys create` at the same time."""
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("PRAGMA journal_mode = WAL")
    holder.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(2) as pool:
        opened = [pool.submit(ControlDatabase, lake) for _ in range(2)]
        threading.Event().wait(0.5)  # all programs have seen an empty database
        holder.execute("COMMIT")
        controls = [one.result() for one in opened]
    holder.close()
    for control in controls:
        ApiKeys(control).create_key("acme", "a")
        control.close()


def test_a_newer_damaged_or_empty_database_is_rejected(lake, database):
    """P6: the keys of a damaged or emptied database are not reported as unknown."""
    ControlDatabase(lake).close()
    land(lake, "acme", [visit()])
    with closing(sqlite3.connect(database)) as db, db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer, lost = (
        database.read_bytes(),
        "so its API keys, jobs and hooks are lost: restore it from a backup, or delete it and create new",
    )
    damaged = b"no database at all, whatever its name says" * 100
    for content, told in ((newer, "newer"), (damaged, "control.sqlite"), (b"", f"{database} is empty, {lost} keys.")):
        database.write_bytes(content)
        with pytest.raises(LakeDamaged, match=re.escape(told)):
            ControlDatabase(lake)
    database.unlink()
    with open_store(ApiKeys, lake) as keys:
        assert owner(keys, keys.create_key("acme", "first")) == "acme"


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "missing"])
def test_a_read_only_database_accepts_no_key(lake, is_there):
    if is_there:
        ControlDatabase(lake).close()
    with opened_control(lake.root) as control, pytest.raises(sqlite3.OperationalError, match="readonly"):
        ApiKeys(control).create_key("acme", "lost")


def test_programs_can_create_the_first_key_concurrently(lake):
    land(lake, "acme", [visit()])
    with ThreadPoolExecutor(8) as pool:
        opened = [future.result() for future in [pool.submit(ControlDatabase, lake) for _ in range(8)]]
    stores = [ApiKeys(one) for one in opened]
    made = [store.create_key("acme", "a") for store in stores]
    assert {owner(store, key) for store in stores for key in made} == {"acme"}
    for one in opened:
        one.close()
    assert not list(lake.staging.glob("*.sqlite"))

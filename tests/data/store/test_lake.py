"""The lake as a folder: where it may be, how it is opened, its seed files, and how its files are verified."""

import logging
import os
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.disk import locks
from data.disk.files import NETWORK, network_file_system, sha256_of, version_of, write_parquet
from data.errors import BadInput, LakeDamaged
from data.store.footers import footer_of
from data.store.lake import Lake
from data.store.landing import Landing, write_visits
from data.store.layout import LINK_CHANGES, LINKS
from data.store.link_files import link_files
from data.visits import SCHEMA_VERSION, VISITS, VISITS_OF_DAYS
from tests.support.lakes import bytes_on_disk
from tests.support.visits import land, visit

DAY, LATER = date(2026, 3, 4), date(2026, 3, 5)


@pytest.fixture
def landed(lake):
    """Land visits, and return the path of the lake's only visit file."""
    land(lake, "acme", [visit(path="/a"), visit(path="/b")])
    return Path(lake.visit_files("acme", DAY, DAY)[1])


def test_a_folder_without_a_lake_is_reported_and_left_unchanged(tmp_path):
    for root in (tmp_path / "absent", tmp_path):
        with pytest.raises(BadInput, match=rf"no lake at {root}"):
            Lake(root)
    assert list(tmp_path.iterdir()) == []


def test_a_lake_can_be_created_and_opened_again(tmp_path, reopened):
    for create in (True, False, True):
        assert reopened(tmp_path / "deep" / "lake", create).manifest.organizations.names() == []


def test_a_symbolic_link_to_a_missing_folder_is_reported(tmp_path):
    (tmp_path / "lake").symlink_to(tmp_path / "disk" / "lake")
    for create in (False, True):
        with pytest.raises(BadInput, match=rf"symbolic link to {tmp_path}/disk/lake, which does not exist"):
            Lake(tmp_path / "lake", create)
    assert not (tmp_path / "disk").exists()


def test_a_file_in_place_of_a_lake_folder_is_reported(lake):
    for folder in (".staging", "visits", "rejects"):
        shutil.rmtree(lake.root / folder)
        (lake.root / folder).write_text("in the way")
        with pytest.raises(BadInput, match=rf"cannot be written: .*: {lake.root}/{folder}"):
            Lake(lake.root)
        (lake.root / folder).unlink()
    (lake.root / "file").write_text("in the way")
    for root in (lake.root / "file", lake.root / "file" / "lake"):
        with pytest.raises(BadInput, match="cannot be written"):
            Lake(root, create=True)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_an_unwritable_folder_is_rejected_as_bad_input(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="cannot be written"):
        Lake(tmp_path / "lake", create=True)


def test_a_network_file_system_is_recognized(tmp_path):
    here, mounts = tmp_path.stat().st_dev, tmp_path / "mountinfo"

    def mount(kind, device):
        number = f"{os.major(device)}:{os.minor(device)}"
        return f"36 35 {number} / /mnt/a\\040b rw,noatime shared:1 - {kind} server:/export rw\n"

    for kind in sorted(NETWORK):
        mounts.write_text(mount("ext4", here + 1) + mount(kind, here))
        assert network_file_system(tmp_path, mounts) == kind
    for kind in ("ext4", "xfs", "btrfs", "overlay", "tmpfs"):
        mounts.write_text(mount(kind, here) + mount("nfs4", here + 1) + "short\n")
        assert network_file_system(tmp_path, mounts) is None, kind
    assert network_file_system(tmp_path, tmp_path / "nowhere") is None
    assert network_file_system(tmp_path) is None


def test_a_lake_on_a_network_file_system_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("data.store.lake.network_file_system", lambda folder: "nfs4")
    with pytest.raises(BadInput, match=r"^the lake cannot be at \S+: nfs4 is a network file system.*local disk\.$"):
        Lake(tmp_path / "lake", create=True)
    assert not (tmp_path / "lake" / "manifest.sqlite").exists()


def test_a_relative_lake_path_stays_valid(tmp_path, reopened, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lake = reopened(Path("here"), create=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    land(lake, "acme", [visit()])
    assert lake.root == tmp_path / "here"
    assert all(Path(file).is_relative_to(tmp_path / "here") for file in lake.visit_files("acme", DAY, DAY))


def test_seed_files_are_empty_and_have_every_column(lake):
    seeds = {lake.seed_visits: VISITS, lake.seed_links: LINKS, lake.seed_link_changes: LINK_CHANGES}
    for seed, schema in seeds.items():
        assert pq.read_table(seed, partitioning=None).equals(schema.empty_table())


def test_a_dictionary_column_is_read_back_as_plain_values(tmp_path):
    numbered = pa.table({"domain": pa.array(["b.example", None, "a.example"]).dictionary_encode()})
    write_parquet([numbered], numbered.schema, tmp_path / "file", statistics=["domain"])
    assert pq.read_table(tmp_path / "file").equals(numbered.cast(pa.schema([("domain", pa.string())])))
    span = pq.read_metadata(tmp_path / "file").row_group(0).column(0).statistics
    assert (span.min, span.max, span.null_count) == ("a.example", "b.example", 1)


def test_constant_columns_are_not_compressed(tmp_path):
    values = {"method": ["GET"] * 500, "utm_term": [None] * 500, "country": ["DE", "FR"] * 250}
    visits = {name: pa.array(texts, pa.string()).dictionary_encode() for name, texts in values.items()}
    visits["path"] = pa.array([f"/{number}" for number in range(500)])
    write_visits(pa.table(visits), tmp_path / "file", footer_of("acme", DAY))
    group = pq.read_metadata(tmp_path / "file").row_group(0)
    codecs = {group.column(place).path_in_schema: group.column(place).compression for place in range(len(VISITS))}
    assert {name for name in values if codecs[name] == "UNCOMPRESSED"} == {"method", "utm_term"}
    assert codecs["path"] == codecs["country"] == "ZSTD"
    assert pq.read_table(tmp_path / "file").select([*values]).to_pydict() == values


def test_only_a_lost_or_damaged_seed_file_is_rewritten(lake, reopened):
    seed = Path(lake.seed_visits)
    before, written_at = seed.read_bytes(), seed.stat().st_mtime_ns
    reopened()
    assert seed.stat().st_mtime_ns == written_at
    seed.unlink()
    assert Path(reopened().seed_visits).exists()
    not_utf_8 = before.replace(b"visited_at", b"\xffisited_at")
    for content in (b"", b"no Parquet file", not_utf_8):
        seed.write_bytes(content)
        assert Path(reopened().seed_visits).read_bytes() == before


def test_files_of_landed_visits_are_listed_after_the_seed(lake):
    assert lake.visit_files("acme", DAY, DAY) == [lake.seed_visits]
    assert link_files(lake, "acme") == ((lake.seed_links,), (lake.seed_link_changes,))
    land(lake, "acme", [visit(path="/a"), visit(path="/b"), visit(path="/c", visited_at=datetime(2026, 3, 5))])
    paths = {
        day: [pq.ParquetFile(file).read().column("path").to_pylist() for file in lake.visit_files("acme", day, day)[1:]]
        for day in (DAY, LATER)
    }
    assert paths == {DAY: [["/a", "/b"]], LATER: [["/c"]]}


def test_a_landed_file_has_statistics_for_the_filter_columns(lake, landed):
    assert landed.parent == lake.root / "visits/organization=acme/day=2026-03-04"
    assert pq.ParquetFile(landed).schema_arrow.equals(VISITS)
    (file,) = lake.manifest.files.live("acme", DAY, DAY)
    assert (file.sha256, file.size, file.visits) == (sha256_of(landed), landed.stat().st_size, 2)
    group = pq.read_metadata(landed).row_group(0)
    chosen = {name for place, name in enumerate(VISITS.names) if group.column(place).is_stats_set}
    assert chosen == {"visited_at", "domain", "short_code", "bot_category", "rules_version"}


def test_discarding_a_landing_removes_its_staged_files(lake):
    landing = Landing(lake, "acme")
    for _ in range(2):  # the last file is written when the batch is complete
        landing.stage(pa.Table.from_pylist([visit()], VISITS_OF_DAYS))
    assert list(lake.staging.iterdir()) != []
    landing.discard()
    assert list(lake.staging.iterdir()) == []
    assert lake.visit_files("acme", DAY, DAY) == [lake.seed_visits]


def test_a_changed_or_missing_visit_file_is_reported(lake, landed):
    content = landed.read_bytes()
    altered = content[:50] + bytes([content[50] ^ 1]) + content[51:]
    for changed in (altered, content[:-1], b"", content + b"\0", None):
        landed.unlink()
        if changed is not None:
            landed.write_bytes(changed)
            os.utime(landed, ns=(1, 1))
        for _ in range(2):
            with pytest.raises(LakeDamaged, match=landed.name):
                lake.visit_files("acme", DAY, DAY)
    assert lake.visit_files("acme", LATER, LATER) == [lake.seed_visits]
    assert lake.visit_files("other", DAY, DAY) == [lake.seed_visits]


def test_a_touched_or_restored_file_is_accepted(lake, landed):
    (before,) = lake.manifest.files.live("acme", DAY, DAY)
    os.utime(landed, ns=(5, 7_000))
    assert lake.visit_files("acme", DAY, DAY) == [lake.seed_visits, str(landed)]
    (after,) = lake.manifest.files.live("acme", DAY, DAY)
    assert after == replace(before, changed_ns=landed.stat().st_ctime_ns, checked_at=after.checked_at)
    assert (after.changed_ns, after.checked_at) > (before.changed_ns, before.checked_at)
    copy = landed.with_name("copy")
    copy.write_bytes(landed.read_bytes())
    copy.rename(landed)
    assert lake.visit_files("acme", DAY, DAY) == [lake.seed_visits, str(landed)]
    (file,) = lake.manifest.files.live("acme", DAY, DAY)
    assert file.inode == landed.stat().st_ino


def test_a_lake_moved_to_another_folder_still_answers(lake, landed, reopened, tmp_path):
    lake.manifest.close()
    lake.root.rename(tmp_path / "moved")
    files = reopened(tmp_path / "moved").visit_files("acme", DAY, DAY)
    assert files[1] == str(tmp_path / "moved" / landed.relative_to(lake.root))


# Schema versions


def test_a_file_records_the_schema_version_of_its_visits(lake, landed):
    assert version_of(pq.read_metadata(landed)) == version_of(pq.read_metadata(lake.seed_visits)) == SCHEMA_VERSION
    assert [file.schema_version for file in lake.manifest.files.live("acme")] == [SCHEMA_VERSION]


def test_a_file_without_a_schema_version_has_version_1(tmp_path):
    write_parquet([VISITS.empty_table()], VISITS, tmp_path / "file")
    assert version_of(pq.read_metadata(tmp_path / "file")) == 1


def test_missing_columns_are_null_in_the_file(tmp_path):
    given = pa.table({"path": ["/a"], "visited_at": pa.array([datetime(2026, 3, 1)], pa.timestamp("us"))})
    write_visits(given, tmp_path / "file", footer_of("acme", DAY))
    (row,) = pq.read_table(tmp_path / "file").cast(VISITS).to_pylist()
    assert row == dict.fromkeys(VISITS.names) | {"path": "/a", "visited_at": datetime(2026, 3, 1)}


@pytest.mark.parametrize("name", ["seed_visits", "seed_links", "seed_link_changes"])
def test_opening_a_lake_replaces_a_seed_with_other_columns(lake, reopened, name):
    path = Path(getattr(lake, name))
    columns, older = pq.read_schema(path), pq.read_schema(path).remove(2)
    write_parquet([older.empty_table()], older, path)
    with ThreadPoolExecutor(8) as pool:  # each program finds a complete seed, old or new
        for _ in pool.map(reopened, [lake.root] * 8):
            assert pq.read_schema(path).equals(columns)
    assert not list(lake.staging.glob("seed-*"))


# A lost manifest (P1, P6): nothing is created next to existing visits


def emptied(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 0")
    path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
    path.write_bytes(b"")


def without_its_last_bytes(path):
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 100)


def at_version_0(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("lose", "problem"),
    [
        (Path.unlink, "is missing"),
        (emptied, "is empty"),
        (at_version_0, "is empty"),
        (without_its_last_bytes, "is truncated"),
        (lambda path: path.write_bytes(b"no database" * 100), "cannot be used (file is not a database)"),
    ],
)
def test_no_manifest_is_created_if_visits_exist(lake, landed, lose, problem, create):
    lake.manifest.close()
    lose(lake.root / "manifest.sqlite")
    before = bytes_on_disk(lake)
    with pytest.raises(LakeDamaged) as refused:
        Lake(lake.root, create=create)
    assert str(refused.value) == (
        f"{lake.root}/manifest.sqlite {problem}, but the lake contains visits: run `traffic rebuild` to "
        "recreate it from their files, or restore a backup."
    )
    assert bytes_on_disk(lake) == before


@pytest.mark.parametrize("lose", [Path.unlink, emptied])
def test_a_lake_without_visits_gets_a_new_manifest(lake, reopened, lose):
    lake.manifest.close()
    lose(lake.root / "manifest.sqlite")
    assert reopened(lake.root, create=True).manifest.organizations.names() == []


# Locks between programs: long waits are logged, and programs that do not wait are told immediately


def wait_for(lock):
    """Start a thread that waits for one of the lake's locks."""

    def take():
        with lock():
            pass

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def may_rewrite(lake, organization):
    """Return whether the lock for rewriting an organization's files (None: all files) is free."""
    with lake.rewrite_lock(False, organization) as has_lock:
        return has_lock


def test_a_long_wait_for_a_lock_is_logged(lake, monkeypatch, caplog):
    monkeypatch.setattr(locks, "NOTICE_AFTER_SECONDS", 0.01)
    with lake.import_lock():
        waiting = wait_for(lake.import_lock)
        while waiting.is_alive() and not caplog.messages:
            time.sleep(0.005)
        assert waiting.is_alive()
    waiting.join()
    assert caplog.messages == [
        f"{lake.root} is locked by another program, such as an import, a merge or a rebuild; waiting until it is done."
    ]


def test_a_rewrite_of_all_organizations_excludes_all_others(lake):
    with lake.rewrite_lock(organization="acme"):
        assert [may_rewrite(lake, name) for name in ("other", "acme", None)] == [True, False, False]
    with lake.rewrite_lock():
        assert [may_rewrite(lake, name) for name in ("other", "acme", None)] == [False] * 3


def test_a_waiting_rewrite_of_all_organizations_is_not_overtaken(lake):
    with lake.rewrite_lock(organization="acme"):
        waiting = wait_for(lake.rewrite_lock)
        while may_rewrite(lake, "other"):
            time.sleep(0.005)
        assert waiting.is_alive()
    waiting.join()
    assert may_rewrite(lake, "other")


def test_a_free_lock_is_acquired_without_a_warning(lake, caplog):
    caplog.set_level(logging.DEBUG)
    with lake.rewrite_lock() as has_lock:
        assert has_lock
        waiting = wait_for(lake.rewrite_lock)
        with lake.rewrite_lock(wait=False) as has_it_too:
            assert not has_it_too
    waiting.join()
    assert caplog.messages == []

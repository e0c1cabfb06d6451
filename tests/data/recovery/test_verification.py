"""Verification reports every kind of damage and each of several damaged files, but no intact file."""

import re
import shutil
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.disk.files import sha256_of, versioned, write_parquet
from data.errors import LakeDamaged
from data.ingest.visitor_ids import daily_salts
from data.manifest.files import READERS_GRACE, LandedFile
from data.manifest.policies import MERGING, RECLASSIFYING
from data.recovery.verification import verify_lake
from data.store.layout import LINKS
from data.store.pending import enqueue
from data.store.unknown import unknown_files
from data.visits import SCHEMA_VERSION, VISITS
from service.access.api_keys import ApiKeys
from tests.support.control import open_store
from tests.support.lakes import files_of as files
from tests.support.lakes import flip, links_path, opened, rot, turn_an_index
from tests.support.manifests import database_of
from tests.support.visits import land, links, packed, visit

DAYS = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lake with one key, three files of 4, 5 and 6 visits for acme, and a file for another organization; both
    organizations have links.
    """
    root = tmp_path_factory.mktemp("made") / "lake"
    with opened(root, create=True) as lake:
        days = [(datetime(2026, 3, 1 + day), n) for day in range(DAYS) for n in range(4 + day)]
        land(lake, "acme", [visit(visited_at=day, path=f"/{n}") for day, n in days])
        land(lake, "other", [visit()])
        for name in ("acme", "other"):
            links(lake, name, [{"short_code": "sale", "target_url": f"https://{name}.example/sale"}])
        with open_store(ApiKeys, lake) as keys:
            keys.create_key("acme", "test")
    return root


@pytest.fixture
def lake(made, tmp_path):
    """A separate copy of the lake."""
    with opened(shutil.copytree(made, tmp_path / "lake")) as lake:
        yield lake


def damaged(lake, **options):
    """Return the findings of a verification, by path."""
    found = verify_lake(lake, **options).findings
    assert len({trouble.path for trouble in found}) == len(found)
    return dict(found)


def rewritten(change):
    """Return a function that writes a file again, with `change` applied to its table."""

    def rewrite(path):
        table = change(pq.ParquetFile(path).read())
        write_parquet([table], table.schema, path, metadata=versioned(SCHEMA_VERSION))

    return rewrite


STATUS = VISITS.get_field_index("status")


def of_version(version, schema=VISITS):
    """Return a function that writes a file without visits, but with a given schema version."""
    return lambda path: write_parquet([], schema, path, metadata={"traffic.schema_version": f"{version}"})


NEWER = SCHEMA_VERSION + 1
REGISTERED = {
    "by a newer program": (
        of_version(NEWER, VISITS.append(pa.field("made_up", pa.string()))),
        f"was written by a newer version of this program (visit schema {NEWER}, this one reads up to {SCHEMA_VERSION}",
    ),
    "of another version": (
        of_version(0),
        f"contains visits of schema version 0, but the manifest records {SCHEMA_VERSION}",
    ),
    "of no version": (of_version(""), "cannot be read: invalid literal"),
    "without a column": (rewritten(lambda table: table.remove_column(3)), "has unexpected columns"),
    "with another type": (
        rewritten(lambda table: table.set_column(STATUS, "status", table["status"].cast(pa.int32()))),
        "has unexpected columns",
    ),
    "no Parquet": (lambda path: path.write_bytes(b"no Parquet file\n" * 9), "cannot be read:"),
    "with its columns in another order": (rewritten(lambda table: table.select(table.column_names[::-1])), None),
}
"""Ways to write a file whose bytes match the manifest, and the resulting problems."""


@pytest.mark.parametrize(("write", "reason"), REGISTERED.values(), ids=REGISTERED)
def test_wrong_contents_are_reported_even_if_the_hash_matches(lake, write, reason):
    file = files(lake)[0]
    path = lake.root / file.path
    write(path)
    with database_of(lake.manifest).transaction() as db:
        now_there = [sha256_of(path), path.stat().st_size, file.path]
        db.execute("UPDATE files SET sha256 = ?, bytes = ? WHERE path = ?", now_there)
    found = damaged(lake)
    assert list(found) == ([file.path] if reason else [])
    assert all(told.startswith(reason) and "\n" not in told for told in found.values())


# Sound


def size_of_visits(lake):
    return sum(path.stat().st_size for path in (lake.root / "visits").glob("organization=[!_]*/*/*"))


def test_a_sound_lake_has_no_findings(lake):
    found = verify_lake(lake)
    assert (found.files, found.visits, found.size) == (DAYS + 1, 4 + 5 + 6 + 1, size_of_visits(lake))
    assert (found.findings, found.unknown, found.is_manifest_damaged) == ([], 0, False)


def test_an_empty_lake_has_no_findings(tmp_path):
    told = []
    with opened(tmp_path / "new", create=True) as empty:
        found = verify_lake(empty, progress=lambda *numbers: told.append(numbers))
    assert (found.files, found.visits, found.size) == (0, 0, 0)
    assert (found.findings, found.unknown, found.is_manifest_damaged) == ([], 0, False)
    assert told == []


def test_progress_grows_with_each_file_up_to_the_total_size(lake):
    told, size = [], size_of_visits(lake)
    verify_lake(lake, progress=lambda *numbers: told.append(numbers))
    assert (len(told), told[-1]) == (DAYS + 1, (size, size))
    assert told == sorted({(done, size) for done, _ in told})


def test_intact_files_are_recorded_as_checked(lake):
    before = datetime.now(UTC)
    flip(lake.root / files(lake)[1].path)
    verify_lake(lake)
    changed = [(lake.root / file.path).stat().st_ctime_ns for file in files(lake)]
    assert [file.checked_at >= before for file in files(lake)] == [True, False, True]
    assert [file.changed_ns == at for file, at in zip(files(lake), changed, strict=True)] == [True, False, True]
    with pytest.raises(LakeDamaged):
        lake.visit_files("acme", date.min, date.max)


# Damaged


def rotten(lake, path):
    """Damage a file without changing its size, change time or inode: every file is hashed anyway."""
    rot(lake, path)
    assert lake.verified_path(files(lake)[1])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda _, path: flip(path, -1), "is damaged: its SHA-256 differs"),
        (lambda _, path: path.write_bytes(path.read_bytes()[:-1]), "is damaged: its SHA-256 differs"),
        (lambda _, path: path.write_bytes(path.read_bytes() + b"\0"), "is damaged: its SHA-256 differs"),
        (rotten, "is damaged: its SHA-256 differs"),
        (lambda _, path: path.unlink(), "is missing"),
        (lambda _, path: shutil.rmtree(path.parent), "is missing"),
        (lambda _, path: (path.unlink(), path.mkdir()), "cannot be read"),
    ],
    ids=["flipped", "cut", "lengthened", "rotten", "missing", "folder missing", "a folder"],
)
def test_a_damaged_file_is_reported_and_the_others_are_checked(lake, damage, reason):
    assert damaged(lake) == {}
    file = files(lake)[1]
    damage(lake, lake.root / file.path)
    found = verify_lake(lake)
    (trouble,) = found.findings
    assert (trouble.path, trouble.reason[: len(reason)], found.files) == (file.path, reason, DAYS + 1)


def test_a_file_with_the_wrong_number_of_visits_is_reported(lake):
    file = files(lake)[2]
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE files SET visits = 1234 WHERE path = ?", [file.path])
    assert damaged(lake) == {file.path: "contains 6 visits, but the manifest records 1,234"}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "cannot be read"),
        (lambda path: pq.write_table(LINKS.remove(0).empty_table(), path), "unexpected columns"),
    ],
    ids=["cut", "other schema"],
)
def test_damaged_seeds_are_reported(lake, damage, reason):
    seeds = [Path(lake.seed_visits), Path(lake.seed_links), Path(lake.seed_link_changes)]
    for path in seeds:
        damage(path)
    found = damaged(lake)
    assert found.keys() == {str(path.relative_to(lake.root)) for path in seeds}
    assert all(reason in told and "recreated" in told for told in found.values())


@pytest.mark.parametrize("damage", [rot, lambda _, path: path.unlink()], ids=["rot", "removal"])
def test_damaged_links_are_reported(lake, damage):
    path = links_path(lake)
    damage(lake, path)
    ((name, reason),) = damaged(lake).items()
    assert name == str(path.relative_to(lake.root))
    assert reason.endswith("; restore it from a backup, or import all links with --replace")


def test_a_single_organization_can_be_checked(lake):
    flip(lake.root / files(lake, "other")[0].path)
    links_path(lake, "other").write_bytes(b"")
    assert damaged(lake, organization="acme") == {}
    assert verify_lake(lake, "acme").files == DAYS
    assert len(damaged(lake, organization="other")) == 2


# Databases


def zeroed(path, table):
    """Overwrite the root page of a table or an index."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((page,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table])
        ((size,),) = db.execute("PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_a_damaged_or_emptied_database_is_reported(lake):
    daily_salts(lake.salts, [date(2026, 3, 1)], datetime.now(UTC))
    assert damaged(lake) == {}
    zeroed(lake.root / "control.sqlite", "keys")
    ((path, reason),) = damaged(lake).items()
    assert (path, "\n" in reason) == ("control.sqlite", False)
    for name in ("control.sqlite", "salts.sqlite"):
        (lake.root / name).write_bytes(b"no database" * 99)
        assert damaged(lake) == {name: "cannot be used: file is not a database"}
        (lake.root / name).write_bytes(b"")
        assert damaged(lake) == {name: "is empty: its contents are lost"}
        (lake.root / name).unlink()
        assert damaged(lake) == {}


def test_a_manifest_with_a_wrong_index_is_reported(lake):
    flip(lake.root / files(lake)[0].path)
    turn_an_index(lake.root / "manifest.sqlite")
    lake.manifest.close()
    with opened(lake.root) as other:
        found = verify_lake(other)
    assert found.findings[0].path == "manifest.sqlite"
    assert "live_files" in found.findings[0].reason
    assert (found.files, len(found.findings), found.is_manifest_damaged) == (DAYS + 1, 2, True)


def test_an_unreadable_manifest_is_reported_once(lake):
    links = links_path(lake)
    links.write_bytes(b"")
    lake.manifest.close()
    zeroed(lake.root / "manifest.sqlite", "files")
    with opened(lake.root) as other:
        found = verify_lake(other)
    assert sorted(trouble.path for trouble in found.findings) == [str(links.relative_to(lake.root)), "manifest.sqlite"]
    assert found.is_manifest_damaged


# Concurrent programs and unknown files


def test_unknown_files_are_counted_but_are_not_a_problem(lake):
    known = lake.root / files(lake)[0].path
    shutil.copy(known, known.with_name("copy.parquet"))
    (lake.root / "visits" / "organization=gone" / "day=2026-01-01").mkdir(parents=True)
    shutil.copy(known, lake.root / "visits" / "organization=gone" / "day=2026-01-01" / "a.parquet")
    (lake.staging / "staged.parquet").write_bytes(b"")
    found = verify_lake(lake)
    assert (found.unknown, found.findings) == (2, [])
    assert [verify_lake(lake, name).unknown for name in ("acme", "other")] == [1, 0]


def test_a_dead_file_is_neither_checked_nor_counted_as_unknown(lake):
    file = files(lake)[0]
    lake.manifest.replace([file], list, RECLASSIFYING, now=datetime.now(UTC), grace=READERS_GRACE)
    flip(lake.root / file.path)
    found = verify_lake(lake)
    assert (found.files, found.findings, found.unknown) == (DAYS, [], 0)


def test_a_file_erased_during_verification_is_not_a_finding(lake):
    *_, last = files(lake)

    def erase(done, total):
        if (lake.root / last.path).exists():
            lake.manifest.replace([last], list, RECLASSIFYING, now=datetime.now(UTC), grace=timedelta(0))
            (lake.root / last.path).unlink()

    assert damaged(lake, organization="acme", progress=erase) == {}
    assert not (lake.root / last.path).exists()


def test_a_file_about_to_land_does_not_count_as_unknown(lake):
    first = files(lake)[0]
    name = re.sub("[^/]+$", "landing.parquet", first.path)
    placed, checked = threading.Event(), threading.Event()

    def place():
        shutil.copy(lake.root / first.path, lake.root / name)
        placed.set()
        checked.wait(0.3)  # it cannot end before this file has landed
        return [LandedFile("acme", first.day, name, first.visits, first.size, first.sha256, 0, 0, datetime.now(UTC))]

    with opened(lake.root) as other:
        asked = {"now": datetime.now(UTC), "grace": timedelta(1)}
        lander = threading.Thread(target=other.manifest.replace, args=([first], place, MERGING), kwargs=asked)
        lander.start()
        placed.wait()
        assert (lake.root / name).exists()
        unknown = unknown_files(lake)  # alone: recording the checks would wait for the landing, too
        checked.set()
        lander.join()
    assert unknown == []
    assert verify_lake(lake).unknown == 0


def test_unreadable_pending_visits_are_reported(lake):
    enqueue(lake.manifest, [("acme", packed([visit()]))], datetime.now(UTC))
    assert verify_lake(lake).findings == []
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE pending SET body = x'00'")
    ((path, reason),) = verify_lake(lake).findings
    assert path == "manifest.sqlite"
    assert reason.startswith("1 pending visit of acme cannot be read (in the m")
    assert verify_lake(lake, "other").findings == []

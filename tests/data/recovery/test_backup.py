"""A backup is a consistent snapshot, complete or absent, despite concurrent writers and kills."""

import os
import random
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from data.errors import BadInput, Conflict, LakeDamaged
from data.ingest.importer import Importer, Options
from data.ingest.visitor_ids import daily_salts
from data.manifest.policies import RECLASSIFYING
from data.recovery import backup
from data.recovery.backup import ATTEMPTS, back_up
from data.recovery.verification import verify_lake
from data.store import pending
from data.store.lake import Lake
from data.tasks.compaction import Compactor
from queries import Scope
from service.access.api_keys import ApiKeys
from service.core.control_database import ControlDatabase
from tests.faults.lakes import ADDRESSES, line
from tests.support.control import open_store, owner
from tests.support.lakes import links_path, opened, paths, rot, turn_an_index
from tests.support.manifests import database_of
from tests.support.sql import answers as answers_of
from tests.support.tables import examples
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, links, packed, visit

ASKED = ("traffic-overview", "top-links", "bot-traffic")  # from rollups, from links, and from visits only
answers = partial(answers_of, scope=Scope("acme", date(2026, 1, 1), date(2026, 1, 31)), names=ASKED)
WAITING = [visit(path="/waiting")] * 3


def log_of(name):
    """Return a log with ten requests for a link on each of six days."""
    return "".join(line(f"/{name}", 1 + number // 10, agent=(CHROME, GPTBOT)[number % 2]) for number in range(60))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A complete lake with imported and merged visits, links, keys, lists, rejects, salts and pending visits."""
    folder = tmp_path_factory.mktemp("made")
    log = folder / "access.log"
    with opened(folder / "lake", create=True) as lake, open_store(ApiKeys, lake) as keys:
        importer = Importer(lake)
        for name in ("sale", "spring"):
            log.write_text(log_of(name) + "this is not a log line\n")
            importer.run(log, Options("acme"))
        Compactor(lake).run()
        log.write_text(log_of("autumn"))
        importer.run(log, Options("acme"))
        land(lake, "other", [visit()])
        pending.enqueue(lake.manifest, [("acme", packed(WAITING))], datetime.now(UTC))
        links(lake, "acme", [{"short_code": "sale", "target_url": "https://acme.example/sale"}])
        (lake.ip_lists / "openai-gptbot.json").write_text('{"fetched_at": "2026-03-01T10:00:00Z", "networks": []}')
        keys.create_key("acme", "test")
        (lake.staging / "staged.parquet").write_bytes(b"staged")
    return lake.root


@pytest.fixture
def lake(made, tmp_path):
    """A separate copy of the complete lake."""
    shutil.copytree(made, tmp_path / "lake")
    with opened(tmp_path / "lake") as lake:
        yield lake


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def live(lake):
    return {path for (path,) in database_of(lake.manifest).rows("SELECT path FROM files WHERE deletable_at IS NULL")}


def erase(lake, file):
    """Make a live file dead and delete it immediately."""
    lake.manifest.replace([file], list, RECLASSIFYING, now=datetime.now(UTC), grace=timedelta(0))
    (lake.root / file.path).unlink()


# Content


def test_a_backup_contains_only_live_data(lake, tmp_path):
    files = [file for name in ("acme", "other") for file in lake.manifest.files.live(name)]
    told = []
    copied = back_up(lake, tmp_path / "copy", lambda done, total: told.append((done, total)))
    rejects = {f"rejects/{path.name}" for path in lake.rejects.iterdir()}
    assert len(rejects) == 2
    known = {"manifest.sqlite", "control.sqlite", "ip-lists/openai-gptbot.json"}
    there = str(links_path(lake).relative_to(lake.root))
    assert names(tmp_path / "copy") == live(lake) | rejects | known | {there}
    assert names(lake.root) > names(tmp_path / "copy") - {"manifest.sqlite"}
    size = sum(file.size for file in files)
    assert copied == (len(files), 3 * 60 + 1, 3, size)
    total = size + links_path(lake).stat().st_size
    assert told[-1] == (total, total)
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == ["copy"]


def test_a_restored_lake_answers_and_works_as_before(lake, tmp_path):
    back_up(lake, tmp_path / "copy")
    shutil.copytree(tmp_path / "copy", tmp_path / "restored")
    log = tmp_path / "again.log"
    log.write_text(log_of("autumn"))
    with opened(tmp_path / "restored") as restored:
        found = verify_lake(restored)
        assert (found.findings, found.unknown, found.visits) == ([], 0, 181)
        expected = answers(lake)
        assert expected["traffic-overview"]["total_visits"] == 180
        assert answers(restored) == expected
        assert restored.manifest.logs.batches("acme", "") == lake.manifest.logs.batches("acme", "")
        importer = Importer(restored)
        assert importer.run(log, Options("acme")).already_imported
        log.write_text(log_of("autumn") + log_of("winter"))
        summary = importer.run(log, Options("acme"))
        assert (summary.continued, summary.visits) == (True, 60)
        pending.flush_all(restored)
        Compactor(restored).run()
        assert verify_lake(restored).visits == 181 + 60 + 3
        assert verify_lake(lake).visits == 181


def test_api_keys_still_work_in_a_restored_lake(lake, tmp_path):
    with open_store(ApiKeys, lake) as control:
        key = control.create_key("other", "new")
        back_up(lake, tmp_path / "copy")  # while the database is open
    with opened(tmp_path / "copy") as restored, open_store(ApiKeys, restored) as control:
        assert owner(control, key) == "other"


def test_a_backup_keeps_the_file_modes_of_databases(lake, tmp_path):
    (lake.root / "manifest.sqlite").chmod(0o640)
    with open_store(ApiKeys, lake):
        back_up(lake, tmp_path / "copy")
    for name, mode in (("control.sqlite", 0o600), ("manifest.sqlite", 0o640)):
        assert stat.S_IMODE((tmp_path / "copy" / name).stat().st_mode) == mode


def test_a_backup_contains_no_addresses_salts_or_dead_files(lake, tmp_path):
    days = [date(2026, 1, 1 + day) for day in range(6)]
    salts = daily_salts(lake.salts, days, datetime.now(UTC))
    dead = {
        path for (path,) in database_of(lake.manifest).rows("SELECT path FROM files WHERE deletable_at IS NOT NULL")
    }
    assert len(dead) == 12
    assert all((lake.root / path).exists() for path in dead)
    back_up(lake, tmp_path / "copy")
    secrets = {ADDRESSES[0], *salts.values()}
    kept = b"".join((tmp_path / "copy" / name).read_bytes() for name in sorted(names(tmp_path / "copy")))
    assert {secret for secret in secrets if secret.encode() in kept} == set()
    everything = b"".join((lake.root / name).read_bytes() for name in sorted(names(lake.root)))
    assert {secret for secret in secrets if secret.encode() in everything} == secrets - {ADDRESSES[0]}
    assert dead.isdisjoint(names(tmp_path / "copy"))
    manifest = (tmp_path / "copy" / "manifest.sqlite").read_bytes()  # footers name replaced files
    assert [path for path in dead if Path(path).stem.encode() in manifest] == []


def test_deleted_rows_are_not_in_the_copied_manifest(lake, tmp_path):
    many = packed([visit(path=f"/{random.randbytes(100).hex()}") for _ in range(6_000)])
    pending.enqueue(lake.manifest, [("acme", many)], datetime.now(UTC))
    pending.flush_all(lake)
    back_up(lake, tmp_path / "copy")
    assert database_of(lake.manifest).rows("PRAGMA freelist_count")[0][0] > 100
    with closing(sqlite3.connect(tmp_path / "copy" / "manifest.sqlite")) as db:
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_an_empty_lake_can_be_backed_up(tmp_path):
    with opened(tmp_path / "empty", create=True) as empty:
        assert back_up(empty, tmp_path / "copy of nothing") == (0, 0, 0, 0)
    with opened(tmp_path / "copy of nothing") as restored:
        assert verify_lake(restored).findings == []


def test_a_backup_can_be_backed_up(lake, tmp_path):
    first = back_up(lake, tmp_path / "copy")
    with opened(tmp_path / "copy") as restored:
        assert back_up(restored, tmp_path / "again") == first
    assert names(tmp_path / "again") == {name for name in names(tmp_path / "copy") if "_seed" not in name}


# Place


def test_an_empty_folder_with_a_strange_name_becomes_the_backup(lake, tmp_path):
    folder, link = tmp_path / "co[p]y*?", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    back_up(lake, link)
    assert ((folder / "manifest.sqlite").exists(), link.is_symlink()) == (True, True)


@examples("where", "reason")
def test_an_unsuitable_backup_folder_is_rejected_unchanged(lake, tmp_path, where, reason):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").write_text("thing")
    (tmp_path / "file").write_text("file")
    (tmp_path / "link").symlink_to(lake.root)
    before = names(tmp_path)
    with pytest.raises(BadInput, match=reason):
        back_up(lake, tmp_path / where)
    assert names(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_an_unwritable_folder_is_rejected(lake, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(BadInput, match="cannot be written"):
        back_up(lake, tmp_path / "closed" / "copy")


# Failures


def overwritten(_, path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[:8192] + b"\xff" * 8192 + path.read_bytes()[16384:])


@pytest.mark.parametrize(
    ("place", "damage", "told"),
    [
        ("visits", rot, "{}.*older backup"),
        ("visits", lambda _, path: path.unlink(), "{}.*older backup"),
        ("links", rot, "{}"),
        ("links", lambda _, path: path.unlink(), "{}"),
        ("manifest.sqlite", overwritten, "{}"),
        ("control.sqlite", overwritten, "{}"),
        ("manifest.sqlite", lambda _, path: turn_an_index(path), "{} is damaged: .*live_files.*older backup"),
    ],
)
def test_a_damaged_file_is_reported_and_prevents_the_backup(lake, tmp_path, place, damage, told):
    path = {"visits": lake.root / sorted(live(lake))[3], "links": links_path(lake)}.get(place, lake.root / place)
    damage(lake, path)
    with pytest.raises(LakeDamaged, match=told.format(re.escape(path.name))):
        back_up(lake, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_full_disk_is_reported_and_leaves_no_backup(lake, tmp_path):
    back_up(lake, tmp_path / "whole")
    sizes = {name: (tmp_path / "whole" / name).stat().st_size for name in names(tmp_path / "whole")}
    largest = max(sizes, key=sizes.get)
    assert largest == "control.sqlite"
    largest_links = max(size for name, size in sizes.items() if name.startswith("links/"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size, name in ((largest_links, r"visits/.*\.parquet"), (sizes[largest] - 1, largest)):
        with closing(ControlDatabase(lake)):  # like a server's: its shared memory exists, and is larger
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
            try:
                with pytest.raises(OSError, match=rf"copy\.partial-\d+/{name}"):
                    back_up(lake, tmp_path / "copy")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "whole"]


def test_a_file_erased_during_the_backup_is_not_in_it(lake, tmp_path):
    files = lake.manifest.files.live("acme")
    doomed = [files[0], files[-1]]  # one file is copied by then, one is not
    left = list(doomed)

    def erase_all(done, total):
        while left:
            erase(lake, left.pop())

    copied = back_up(lake, tmp_path / "copy", erase_all)
    assert copied.files == len(files) + 1 - len(doomed)
    assert copied.visits == 181 - sum(file.visits for file in doomed)
    assert names(tmp_path / "copy").isdisjoint(file.path for file in doomed)
    is_alone = doomed[0].day not in {file.day for file in files[1:-1]}
    assert not (is_alone and (tmp_path / "copy" / doomed[0].path).parent.exists())
    with opened(tmp_path / "copy") as restored:
        found = verify_lake(restored)
        assert (found.findings, found.unknown, found.files) == ([], 0, copied.files)


def test_a_retry_does_not_copy_files_again(lake, tmp_path, monkeypatch):
    *others, last = lake.manifest.files.live("acme")
    copied, real = Counter(), backup._copy_file
    monkeypatch.setattr(backup, "_copy_file", lambda file, target: (copied.update([file.name]), real(file, target))[1])
    back_up(lake, tmp_path / "copy", lambda done, total: (lake.root / last.path).exists() and erase(lake, last))
    assert {copied[str(lake.root / file.path)] for file in others} == {1}
    assert str(lake.root / last.path) not in copied


def test_a_backup_gives_up_after_a_fixed_number_of_attempts(lake, tmp_path, monkeypatch):
    moments, real = [], backup._snapshot

    @contextmanager
    def moment_then_erasure(lake, name):
        with real(lake, name) as copy:
            moments.append(name)
            erase(lake, lake.manifest.files.live("acme")[0])
            yield copy

    monkeypatch.setattr(backup, "_snapshot", moment_then_erasure)
    with pytest.raises(Conflict, match="repeatedly"):
        back_up(lake, tmp_path / "copy")
    assert moments == ["control.sqlite", *["manifest.sqlite"] * ATTEMPTS]
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_links_replaced_during_a_backup_are_copied_as_they_were(lake, tmp_path):
    before = links_path(lake)
    rows = [{"short_code": "sale", "target_url": "https://acme.example/other"}]
    back_up(lake, tmp_path / "copy", lambda done, total: before == links_path(lake) and links(lake, "acme", rows))
    assert links_path(lake) != before
    with opened(tmp_path / "copy") as copy:
        assert links_path(copy).name == before.name
        assert verify_lake(copy).findings == []


# Kills and concurrent programs


def test_only_leftovers_from_dead_backups_are_removed(lake, tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = [f"copy.partial-{ended.pid}", f"copy.partial-{os.getpid()}", f"copy.partial-{10**30}"]
    kept = [f"copy.partial-{os.getppid()}", f"copy2.partial-{ended.pid}", "copy.partial-mine", "copy.partial-"]
    for name in gone + kept:
        (tmp_path / name / "visits").mkdir(parents=True)
    back_up(lake, tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "copy", *kept}


def test_backups_made_under_load_are_consistent_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr("data.tasks.compaction.READERS_GRACE", timedelta(0))  # merged files may be deleted immediately
    root, log, stop, done = tmp_path / "lake", tmp_path / "access.log", threading.Event(), Counter()
    Lake(root, create=True).manifest.close()

    def import_logs():
        with opened(root) as lake:
            importer = Importer(lake)
            while not stop.is_set():
                log.write_text("".join(line(f"/{done['imported']}", 1 + number % 2) for number in range(10)))
                importer.run(log, Options("acme"))
                done["imported"] += 1

    def merge():
        with opened(root) as lake:
            for number in count(1):
                pending.enqueue(lake.manifest, [("live", packed([visit(path=f"/{number}")] * 10))], datetime.now(UTC))
                if number % 7 == 0:
                    pending.flush_all(lake)
                done["merged"] += Compactor(lake).run(wait=False).partitions
                if number % 20 == 0:
                    Compactor(lake).sweep()
                if stop.is_set():
                    break

    with opened(root) as lake, ThreadPoolExecutor(2) as pool:
        work = [pool.submit(import_logs), pool.submit(merge)]
        try:
            for number in range(2):
                while done["imported"] < 4 * number + 4 or "live" not in lake.manifest.organizations.names():
                    assert not any(one.done() for one in work)
                    time.sleep(0.01)
                back_up(lake, tmp_path / f"copy{number}")
        finally:
            stop.set()
        for one in work:
            one.result()
    first, second = (whole_batches(tmp_path / f"copy{number}") for number in range(2))
    assert 4 <= first <= second <= done["imported"]
    assert second >= 8
    assert done["merged"] > 0


def whole_batches(root):
    """Check that a backup contains every visit from each of its logs and no others; return the number of logs."""
    with opened(root) as copy:
        found = verify_lake(copy)
        assert (found.findings, found.unknown) == ([], 0)
        assert database_of(copy.manifest).rows("SELECT count(*) FROM files WHERE deletable_at IS NOT NULL") == [(0,)]
        logs = copy.manifest.logs.batches("acme", "")
        assert sum(log.visits for log in logs) == paths(copy).total()
        pending.flush_all(copy)
        for organization, start in (("acme", 0), ("live", 1)):
            counts = paths(copy, organization)
            assert set(counts.values()) == {10}
            assert counts.keys() == {f"/{number}" for number in range(start, start + len(counts))}
        assert len(paths(copy)) == len(logs)
    return len(logs)

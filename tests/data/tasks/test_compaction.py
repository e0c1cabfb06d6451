"""Compaction reduces the number of files without changing answers; a sweep deletes only obsolete files."""

import os
import random
import shutil
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from data.errors import Conflict, LakeDamaged, TrafficError
from data.ingest.importer import Importer, Options
from data.manifest.files import READERS_GRACE, Files, LandedFile
from data.manifest.policies import RECLASSIFYING
from data.store import landing
from data.store.rewriting import Partition
from data.tasks import compaction as compacting
from data.tasks import merge_plan
from data.tasks.compaction import ABANDONED_AFTER, CompactionResult, Compactor
from data.tasks.merge_plan import MAX_OPEN_FILES, DayMerge, concurrent_groups, group_merges
from data.visits import VISITS
from queries import ENTRIES, Scope
from service.demo.sample import Sample
from tests.faults.lakes import line
from tests.support.lakes import date_ahead, dead_files, failing_at, files_of, numbers, opened, paths, rows_of, strays
from tests.support.sql import answers
from tests.support.user_agents import GPTBOT
from tests.support.visits import land, links, visit

TODAY = date(2026, 3, 6)
NOW = datetime(2026, 3, 6, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=30)
ACME = Options("acme")


def compact(lake, at=NOW, threads=1, **how):
    return Compactor(lake, lambda: at, threads=threads).run(**how)


def files_on(lake, day):
    """Return the live files for a day in March."""
    return [file for file in files_of(lake) if file.day == date(2026, 3, day)]


def names(lake):
    return {file.path for file in files_of(lake)}


def day_of(day, number=0, **columns):
    """Return a visit on a day in March."""
    return visit(visited_at=datetime(2026, 3, day, 12, 0, number % 60), path=f"/{day}-{number}", **columns)


def land_files(lake, day, files, organization="acme"):
    for number in range(files):
        land(lake, organization, [day_of(day, number)])


# The same answers

SCOPE = Scope("acme", date(2026, 2, 20), TODAY)
ALL = [name for name in ENTRIES if ENTRIES[name].shape != "parts"]  # with these members


def test_merging_changes_no_answer_and_no_column(lake, tmp_path):
    """The sample has three past days and today, with the visits of each day spread over at least 15 files."""
    with opened(tmp_path / "source", create=True) as source:
        Sample(visits=600, last_day=TODAY, days=4, links=30).write(tmp_path / "access.log")
        Importer(source).run(tmp_path / "access.log", ACME)
        sample = [row | {"day": row["visited_at"].date()} for row in rows_of(source)]
    random.Random(7).shuffle(sample)
    for number in range(15):
        land(lake, "acme", sample[number::15])
    land_files(lake, 6, 5)
    links(lake, "acme", [{"short_code": "a", "target_url": "https://target.example/"}])
    lake.manifest.behaviour.switch("acme", on=False)

    def visits():
        return Counter(tuple((row | {"signals": None}).items()) for row in rows_of(lake))

    before, visits_before = answers(lake, SCOPE, ALL), visits()
    assert before["traffic-overview"]["total_visits"] == 605
    assert numbers(lake) == {3: 15, 4: 15, 5: 15, 6: 20}
    done = compact(lake, threads=2)
    past = sum(file.visits for file in files_of(lake) if file.day < TODAY)
    assert (done.partitions, done.files_before, done.files_after) == (4, 15 * 3 + 20, 4)
    assert done.visits > past
    assert numbers(lake) == {3: 1, 4: 1, 5: 1, 6: 1}
    assert answers(lake, SCOPE, ["traffic-overview"])["traffic-overview"] == before["traffic-overview"]
    compact(lake, LATER)
    assert numbers(lake) == {3: 1, 4: 1, 5: 1, 6: 1}
    swept = Compactor(lake, lambda: LATER + 2 * READERS_GRACE).sweep()
    assert swept == 15 * 3 + 20 + 1  # the file of a day that was today
    assert answers(lake, SCOPE, ALL) == before
    assert visits() == visits_before
    assert lake.manifest.organizations.epoch("acme") == 1 + 2  # the switch, three days judged together, and one
    for file in files_of(lake):
        written = pq.ParquetFile(lake.root / file.path)
        assert written.schema_arrow.equals(VISITS)
        assert written.metadata.num_rows == file.visits
        assert (lake.root / file.path).parent.name == f"day={file.day}"


def test_a_merged_file_is_sorted_and_keeps_extreme_values(lake):
    for code, second in (("b", 3), (None, 1), ("a", 9), ("b", 1), ("a", 2), (None, 5)):
        land(lake, "acme", [visit(short_code=code, visited_at=datetime(1970, 1, 1, 0, 0, second))])
    at = {"visited_at": datetime(1970, 1, 1)}
    land(lake, "acme", [visit(short_code="", visitor=-(2**63), status=-1, path="", user_agent="\ufffd é", **at)])
    land(lake, "acme", [visit(**dict.fromkeys(VISITS.names) | at)])
    before = sorted(rows_of(lake), key=str)
    compact(lake)
    assert numbers(lake) == {1: 1}
    told = [(row["short_code"], row["visited_at"].second) for row in rows_of(lake)]
    assert told == [("", 0), ("a", 2), ("a", 9), ("b", 1), ("b", 3), (None, 0), (None, 1), (None, 5)]
    assert sorted((row | {"signals": None} for row in rows_of(lake)), key=str) == before


# How many files


def test_a_past_day_becomes_one_judged_file(lake):
    assert (compact(lake), Compactor(lake).sweep()) == (CompactionResult(), 0)
    for day, files in ((3, 1), (4, 2), (5, 9)):
        land_files(lake, day, files)
    assert compact(lake) == CompactionResult(partitions=3, files_before=12, files_after=3, visits=12, judged=3)
    assert numbers(lake) == {3: 1, 4: 1, 5: 1}
    assert compact(lake) == CompactionResult()


@pytest.mark.parametrize(
    ("now", "day", "files", "left"),
    [
        (NOW, 6, MAX_OPEN_FILES, MAX_OPEN_FILES),
        (NOW, 6, MAX_OPEN_FILES + 1, 1),
        (NOW, 7, MAX_OPEN_FILES + 1, 1),
        (datetime(2026, 3, 6, 23, 59, 59, tzinfo=UTC), 6, 3, 3),
        (datetime(2026, 3, 7, tzinfo=UTC), 6, 3, 1),
    ],
)
def test_files_of_an_open_day_in_utc_are_merged_past_a_limit(lake, now, day, files, left):
    land_files(lake, day, files)
    assert compact(lake, now).partitions == (left == 1)
    assert numbers(lake) == {day: left}
    assert sum(paths(lake).values()) == files


def test_only_smaller_files_of_an_open_day_are_merged(lake):
    sizes = [*range(12, 0, -1), 98, 200]  # 98 is more than 1.25 times the 78 visits of the smaller files
    for size in sizes:
        land(lake, "acme", [day_of(6, size)] * size)
    before = {file.visits: file.path for file in files_on(lake, 6)}
    assert compact(lake) == CompactionResult(partitions=1, files_before=12, files_after=1, visits=78)
    assert names(lake) > {before[98], before[200]}
    assert sum(paths(lake).values()) == sum(sizes)


def test_a_past_day_with_recent_visits_is_not_yet_merged(lake):
    patient = Compactor(lake, lambda: NOW, timedelta(minutes=10))
    land_files(lake, 4, 3)
    assert patient.run() == CompactionResult()
    land_files(lake, 4, 10)
    assert patient.run().files_before == 13  # as on an open day
    land_files(lake, 4, 2)
    assert Compactor(lake, lambda: NOW).run().files_before == 3
    assert numbers(lake) == {4: 1}
    land_files(lake, 4, 2)
    date_ahead(lake)  # a landing while the clock was ahead does not prevent the merge
    assert patient.run().files_before == 3


def test_a_visit_on_a_busy_day_is_written_only_a_few_times():
    """In this model of merging, a file lands every ten seconds, and files are merged every thirty."""
    file = LandedFile("acme", TODAY, "", 0, 0, "", 0, 0, NOW)
    chance, files, written, landed = random.Random(7), [], 0, 0
    for number in range(2_160):  # for a quarter of the day
        files.append(replace(file, visits=chance.randrange(1, 1_000)))
        landed += files[-1].visits
        if number % 3 == 0 and (chosen := merge_plan._to_merge(files)):
            merged = replace(file, visits=sum(one.visits for one in chosen))
            files = [one for one in files if not any(one is other for other in chosen)] + [merged]
            written += merged.visits
    assert len(files) <= MAX_OPEN_FILES + 3
    assert sum(one.visits for one in files) == landed
    assert 1 < written / landed < 8


@pytest.fixture
def day_by_day(monkeypatch):
    """Merge days one by one, as large days are merged."""
    monkeypatch.setattr(merge_plan, "VISITS_AT_ONCE", 0)


def test_organizations_with_the_most_files_are_merged_first(lake):
    files = {"a": 2, "b": 4, "c": 3, "d": 1}
    for organization, number in files.items():
        land_files(lake, 1, number, organization)
    merged = []
    for _ in files:
        assert compact(lake, limit=1).partitions == 1
        merged.append("".join(name for name in files if any(file.behaviour_version for file in files_of(lake, name))))
    assert merged == ["b", "bc", "abc", "abcd"]
    assert compact(lake, limit=1).partitions == 0
    for organization, number in files.items():
        assert numbers(lake, organization) == {1: 1}
        assert paths(lake, organization) == {f"/1-{place}": 1 for place in range(number)}


@pytest.mark.usefixtures("day_by_day")
def test_a_run_opens_one_engine_for_all_days(lake, monkeypatch):
    for day in (2, 3, 4):
        land_files(lake, day, 2)
    told, engines, connect = [], [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda: engines.append(connect()) or engines[-1])
    assert compact(lake, progress=lambda done, whole: told.append((done, whole))).partitions == 3
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert len(engines) == 1


def test_small_past_days_of_an_organization_are_merged_together():
    file = LandedFile("acme", TODAY, "", 0, 0, "", 0, 0, NOW)

    def merge(day, organization="acme", is_past=True, files=1, **one):
        return DayMerge(Partition(organization, date(2026, 3, day)), [replace(file, **one)] * files, is_past)

    def named(group):
        return [(one.partition.organization, one.partition.day.day) for one in group]

    def grouped(*merges):
        return [*map(named, group_merges(merges))]

    assert grouped(merge(1), merge(1, "b"), merge(6, is_past=False), merge(2), merge(2, "b")) == [
        [("acme", 1), ("acme", 2)], [("b", 1), ("b", 2)], [("acme", 6)],
    ]  # fmt: skip
    for most in ({"visits": 50_000}, {"size": 8 << 20}, {"files": 50}):
        assert grouped(*(merge(day, **most) for day in (1, 2, 3))) == [[("acme", 1), ("acme", 2)], [("acme", 3)]]
    assert grouped(merge(1, visits=1 << 30), merge(2), merge(3)) == [[("acme", 1)], [("acme", 2), ("acme", 3)]]
    large = [[merge(day, visits=2_500_000)] for day in range(1, 6)]
    for groups, most, rows in (
        (large, 1, [1, 1, 1, 1, 1]),
        (large, 2, [2, 2, 1]),
        (large, 3, [2, 2, 1]),  # three of them would need more memory than one day gets
        ([large[0], [merge(1, "b")], [merge(2, "b")]], 2, [1, 2]),  # an organization is rewritten under its own lock
    ):
        assert [len(row) for row in concurrent_groups(groups, most)] == rows
        assert [*chain(*concurrent_groups(groups, most))] == groups


def test_a_merge_keeps_the_file_of_an_unfinished_line_separate(lake, load):
    whole = line("/a") + line("/b")
    load(whole + line("/cut")[:-8])
    load(line("/other"), name="other.log")
    load(line("/last")[:-1], name="last.log")
    assert compact(lake) == CompactionResult(partitions=1, files_before=4, files_after=3, visits=5, judged=1)
    assert numbers(lake) == {1: 3}
    assert compact(lake, LATER) == CompactionResult()
    load(whole + line("/cut") + line("/more"))
    assert paths(lake) == dict.fromkeys(["/a", "/b", "/other", "/cut", "/more", "/last"], 1)
    assert {row["user_agent"] for row in rows_of(lake)} == {GPTBOT}
    assert compact(lake).files_before == 3
    assert numbers(lake) == {1: 2}
    assert load(whole + line("/cut") + line("/more")).already_imported
    assert sum(paths(lake).values()) == 6


# Failures


@pytest.fixture
def two_days(lake, day_by_day):
    """A lake with two past days of three files each, which are merged day by day; also its files and its visits'
    paths.
    """
    for day in (4, 5):
        land_files(lake, day, 3)
    return lake, names(lake), paths(lake)


def assert_as_before_or_done(two_days, done):
    """Check that this many days are merged, that the others are unchanged, and that the next run does the rest."""
    lake, before, told = two_days
    assert paths(lake) == told
    assert sorted(numbers(lake).values()) == sorted([1] * done + [3] * (2 - done))
    assert len(names(lake) & before) == 3 * (2 - done)
    assert strays(lake) == ([], set())
    assert compact(lake).partitions == 2 - done
    assert (paths(lake), numbers(lake)) == (told, {4: 1, 5: 1})
    assert strays(lake) == ([], set())


@pytest.mark.parametrize(("damage", "threads"), [("flipped", 1), ("flipped", 2), ("missing", 1)])
def test_a_damaged_file_is_reported_once_other_days_are_merged(two_days, damage, threads):
    lake, before, _ = two_days
    (broken, *_) = files_on(lake, 4)
    path = lake.root / broken.path
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
        assert compact(lake, limit=1).partitions == 1  # one at a time, it delays no other day
    else:
        path.write_bytes(content[:-20] + b"x" + content[-19:])
    for how in ({}, {"limit": 1}):
        with pytest.raises(LakeDamaged, match=path.name):
            compact(lake, threads=threads, **how)
        assert numbers(lake) == {4: 3, 5: 1}
        assert len(names(lake) & before) == 3
    path.write_bytes(content)
    assert_as_before_or_done(two_days, 1)


@pytest.mark.parametrize("damage", ["overwritten", "replaced meanwhile"])
def test_an_unmergeable_day_does_not_block_others(lake, monkeypatch, damage):
    for day in (3, 4, 5):
        land_files(lake, day, 2)
    (broken, *_) = files_on(lake, 4)
    if damage == "overwritten":  # found while reading
        path, kept = lake.root / broken.path, (lake.root / broken.path).read_bytes()
        path.write_bytes(kept[:4] + bytes(len(kept) // 2) + kept[4 + len(kept) // 2 :])
        stat = path.stat()
        lake.manifest.files.refresh_stat(broken.path, stat.st_ctime_ns, stat.st_ino, NOW)
        with pytest.raises(LakeDamaged, match=path.name):
            compact(lake)
    else:
        read, told = compacting.readable, []

        def late(lake, *files):
            if not told:
                told.append(len({file.day for file in files}))
                lake.manifest.replace([broken], list, RECLASSIFYING, now=NOW, grace=timedelta(0))
            return read(lake, *files)

        monkeypatch.setattr(compacting, "readable", late)
        assert compact(lake).judged == 2
        assert told == [3]
    assert numbers(lake) == {3: 1, 4: 2 if damage == "overwritten" else 1, 5: 1}


def test_a_damaged_file_is_reported_if_another_day_has_changed(two_days, monkeypatch):
    lake, read = two_days[0], compacting.readable
    changed, damaged = (files_on(lake, day)[0] for day in (4, 5))

    def late(lake, *files):
        if changed in files:
            raise Conflict(changed.path)
        return read(lake, *files)

    monkeypatch.setattr(compacting, "readable", late)
    (lake.root / damaged.path).unlink()
    with pytest.raises(LakeDamaged, match=Path(damaged.path).name):
        compact(lake, threads=2)


SLOW = """
SELECT * FROM read_parquet($files, hive_partitioning := FALSE)
WHERE (SELECT sum(a.range + b.range) FROM range(1000000) a, range(1000000) b) > 0
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_merge_changes_nothing(two_days, monkeypatch, threads):
    compactor, told = Compactor(two_days[0], lambda: NOW, threads=threads), []

    def run():
        try:
            told.append(compactor.run(limit=1))
        except TrafficError as error:
            told.append(error)

    with monkeypatch.context() as patch:
        patch.setattr(compacting, "read_sql", lambda *_: SLOW)
        thread = threading.Thread(target=run)
        thread.start()
        while not told and thread.is_alive():  # its merge never ends
            compactor.interrupt()
            thread.join(0.01)
        thread.join()
    assert [type(one).__base__ for one in told] == [TrafficError]
    assert_as_before_or_done(two_days, 0)


def test_an_interruption_outside_a_merge_does_nothing(two_days, monkeypatch):
    lake = two_days[0]
    compactor, exchange = Compactor(lake, lambda: NOW), lake.manifest.replace

    def interrupting(*args):
        compactor.interrupt()
        return exchange(*args)

    compactor.interrupt()
    with monkeypatch.context() as patch:
        patch.setattr(lake.manifest, "replace", interrupting)
        assert compactor.run(limit=1).partitions == 1
    assert_as_before_or_done(two_days, 1)


# Concurrent programs


def test_a_merge_waits_for_another_rewrite_or_does_nothing(two_days, reopened):
    (lake, before, _), told = two_days, []
    with reopened().rewrite_lock():
        assert compact(lake, wait=False) == CompactionResult()
        thread = threading.Thread(target=lambda: told.append(compact(lake)))
        thread.start()
        thread.join(0.05)
        assert (told, names(lake)) == ([], before)
    thread.join()
    assert told[0].partitions == 2


def replaced_by_a_copy(lake):
    file = files_on(lake, 4)[0]
    copy = replace(file, path=f"{file.path}-copy")
    lake.manifest.replace([file], lambda: [copy], RECLASSIFYING, now=LATER, grace=timedelta(0))
    shutil.copy(lake.root / file.path, lake.root / copy.path)


@pytest.mark.parametrize(
    ("change", "merged", "left", "landed"),
    [
        (replaced_by_a_copy, 1, {4: 3, 5: 1}, {}),
        (lambda lake: land(lake, "acme", [day_of(4, 99)]), 2, {4: 2, 5: 1}, {"/4-99": 1}),
    ],
    ids=["replaced", "landed"],
)
def test_files_that_change_during_a_merge_wait_for_the_next_run(two_days, monkeypatch, change, merged, left, landed):
    lake, _, told = two_days
    exchange = lake.manifest.replace

    def late(*args):
        monkeypatch.setattr(lake.manifest, "replace", exchange)
        change(lake)
        return exchange(*args)

    monkeypatch.setattr(lake.manifest, "replace", late)
    assert compact(lake).partitions == merged
    assert (numbers(lake), paths(lake), strays(lake)) == (left, told + Counter(landed), ([], set()))
    assert compact(lake).partitions == 1
    assert (numbers(lake), paths(lake)) == ({4: 1, 5: 1}, told + Counter(landed))


def test_files_erased_during_a_merge_do_not_count_as_damaged(two_days):
    lake, _, _ = two_days

    def erase(done, _):
        if done == 1:
            lake.manifest.replace(files_on(lake, 5), list, RECLASSIFYING, now=NOW, grace=timedelta(0))
            assert Compactor(lake, lambda: NOW).sweep() == 3

    assert compact(lake, progress=erase).partitions == 1
    assert numbers(lake) == {4: 1}


# Sweeps


def listing(lake):
    """Return every file in the lake except the databases."""
    return {
        str(path.relative_to(lake.root))
        for path in lake.root.rglob("*")
        if path.is_file() and ".sqlite" not in path.name
    }


def put(lake, name, age=timedelta(0)):
    path = lake.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"something")
    moment = (NOW - age).timestamp()
    os.utime(path, (moment, moment))
    return name


def test_a_sweep_deletes_only_dead_orphaned_and_abandoned_files(lake):
    second = timedelta(seconds=1)
    for files, at in ((3, NOW - READERS_GRACE), (2, NOW - READERS_GRACE + second)):  # some of the second may be in use
        land_files(lake, 4, files)
        compact(lake, at)
    for organization in ("acme", "other"):
        land_files(lake, 5, 1, organization)
    links(lake, "acme", [{"short_code": "a", "target_url": "https://target.example/"}])
    for name, age in {
        "rejects/acme-1.csv": 10 * ABANDONED_AFTER,
        "ip-lists/x.json": 10 * ABANDONED_AFTER,
        ".staging/of-a-running-import.parquet": timedelta(0),
        ".staging/nearly-abandoned.parquet": ABANDONED_AFTER - second,
        ".staging/engine/spilled.tmp": ABANDONED_AFTER - second,
        "visits/organization=acme/day=2026-03-04/notes.txt": 10 * ABANDONED_AFTER,
        "visits/organization=_seed/day=1970-01-01/x.parquet": 10 * ABANDONED_AFTER,
        "visits/organization=acme/day=2026-03-04/unknown.parquet": 10 * ABANDONED_AFTER,
    }.items():
        put(lake, name, age)
    dead, expired = dead_files(lake).keys(), set(lake.manifest.files.deletable(NOW))
    assert (len(dead), len(expired)) == (6, 3)
    kept = listing(lake) - expired
    gone = {
        put(lake, "rollups/organization=acme/month=2026-03-01/orphan.parquet"),
        put(lake, ".staging/abandoned.parquet", ABANDONED_AFTER + second),
        put(lake, ".staging/engine/abandoned.tmp", 9 * ABANDONED_AFTER),
    }
    assert Compactor(lake, lambda: NOW).sweep() == 3 + len(gone)
    moved = {path for path in kept if path.endswith(("day=2026-03-04/notes.txt", "day=2026-03-04/unknown.parquet"))}
    assert len(moved) == 2
    assert listing(lake) == kept - moved | {path.replace("visits/", "unknown/") for path in moved}
    assert dead_files(lake).keys() == dead - expired
    assert Compactor(lake, lambda: NOW).sweep() == 0
    assert sum(paths(lake).values()) == 6


def test_files_dated_by_a_fast_clock_are_swept_within_a_day(lake):
    land_files(lake, 4, 3)
    compact(lake)
    date_ahead(lake)
    assert Compactor(lake).sweep() == 3
    assert sum(paths(lake).values()) == 3
    put(lake, ".staging/abandoned.parquet", -timedelta(days=365))
    second = timedelta(seconds=1)
    for later, swept in ((timedelta(0), 0), (ABANDONED_AFTER - second, 0), (ABANDONED_AFTER + second, 1)):
        assert Compactor(lake, lambda: NOW + later).sweep() == swept  # noqa: B023


def test_files_from_a_running_import_are_not_swept(lake, reopened, load, monkeypatch):
    other, swept, threads = reopened(), [], []
    hashing, moving = landing.sha256_of, landing.move_durably

    def hash_after_a_sweep(path):
        swept.append(Compactor(other).sweep())
        return hashing(path)

    def move_before_a_sweep(source, target):
        moving(source, target)
        threads.append(threading.Thread(target=lambda: swept.append(Compactor(other).sweep())))
        threads[-1].start()
        threads[-1].join(0.1)  # the file is at its final path, but not yet registered

    with monkeypatch.context() as patch:
        patch.setattr(landing, "sha256_of", hash_after_a_sweep)
        patch.setattr(landing, "move_durably", move_before_a_sweep)
        load("".join(line(f"/{number}", 1 + number % 2) for number in range(4)))
        assert swept == [0, 0]
    for thread in threads:
        thread.join()
    assert swept == [0] * 4
    assert paths(lake) == {f"/{number}": 1 for number in range(4)}


def test_a_stopped_sweep_resumes_despite_a_missing_file(lake):
    land_files(lake, 4, 3)
    gone, *_ = names(lake)
    compact(lake, NOW - READERS_GRACE)
    (lake.root / gone).unlink()
    with failing_at(Files, "purge"):
        Compactor(lake, lambda: NOW).sweep()
    assert Compactor(lake, lambda: NOW).sweep() == 3
    assert lake.manifest.files.deletable(LATER) == []
    assert (len(listing(lake) & names(lake)), sum(paths(lake).values())) == (1, 3)


def test_a_staged_file_that_vanishes_does_not_stop_a_sweep(lake, monkeypatch):
    put(lake, ".staging/moved-meanwhile.parquet")
    put(lake, ".staging/abandoned.parquet", 2 * ABANDONED_AFTER)
    is_file = Path.is_file

    def moved(path):
        told = is_file(path)
        if path.name == "moved-meanwhile.parquet":
            path.unlink(missing_ok=True)
        return told

    monkeypatch.setattr(Path, "is_file", moved)
    assert Compactor(lake, lambda: NOW).sweep() == 1

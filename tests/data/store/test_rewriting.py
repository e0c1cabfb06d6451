"""Tasks that rewrite days: the state after they fail or are stopped or killed, and the memory that they need.

No day is ever half rewritten, and the next run does the rest. At each step, some tasks fail and the others are killed;
with `TRAFFIC_FAULTS=all`, each task both fails and is killed. Memory grows with a day's visits where spilling cannot
replace it.
"""

import fcntl
import os
import random
import shutil
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from types import SimpleNamespace

import pytest

from data.errors import LakeDamaged
from data.manifest import policies
from data.manifest.files import Files
from data.store import engines, rewriting
from data.tasks import compaction, erasure, merge_plan, reclassification
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser, delete_files
from data.tasks.reclassification import Reclassifier
from queries import RollupBuilder
from tests.faults.trials import IS_LONG
from tests.support.lakes import everything_in, failing_at, landed, opened, rows_of, strays
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)

# Failures

FILES = [(3, 2, 1), (4, 1, 2), (4, 3, 0), (4, 0, 1), (5, 2, 0)]
"""The day of each file, how many of its visits are erased, and how many are kept."""


def compact(lake, **how):
    return Compactor(lake, lambda: NOW).run(**how)


def erase(lake, **how):
    return Eraser(lake).run("acme", Criteria(domain="gone.example"), **how)


def reclassify(lake, **how):
    return Reclassifier(lake).run(["acme"], **how)


@pytest.fixture(scope="module")
def day_by_day():
    """Merge days one by one, as large days are merged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_plan, "VISITS_AT_ONCE", 0)
        yield


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A closed lake with three days in five files, and visits classified by older rules."""
    root = tmp_path_factory.mktemp("mixed") / "lake"
    with opened(root, create=True) as lake:
        for number, (day, gone, kept) in enumerate(FILES):
            rows = [{"domain": "gone.example", "user_agent": GPTBOT}] * gone + [{"user_agent": CHROME}] * kept
            land(lake, "acme", [visit(visited_at=datetime(2026, 3, day, 12, number), **row) for row in rows])
    return root


RUNS = (compact, erase, reclassify)


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: run.__name__)
def case(request, mixed, day_by_day, tmp_path_factory):
    """A closed lake to copy, the task to run on a copy, the lake's visits before and after, and its epoch after."""
    module = {compact: "compaction", erase: "erasure", reclassify: "reclassification"}[request.param]
    with opened(shutil.copytree(mixed, tmp_path_factory.mktemp("case") / "done")) as lake:
        before = landed(lake)
        assert request.param(lake).partitions == len(before) == 3
        epoch = lake.manifest.organizations.epoch("acme")
        return SimpleNamespace(
            run=request.param, module=module, root=mixed, before=before, after=landed(lake), epoch=epoch
        )


def assert_whole_and_finished_by_the_next_run(case, lake, has_strays=False):
    """Check that each day is unchanged or complete, that nothing else exists, and that another run completes the rest;
    return the number of complete days.
    """
    left = landed(lake)
    done = [day for day in case.before if left.get(day) == case.after.get(day)]
    wanted = case.before | {day: case.after.get(day) for day in done}
    assert left == {day: files for day, files in wanted.items() if files}
    assert lake.manifest.organizations.epoch("acme") == case.epoch * len(done) // len(case.before)
    assert has_strays or strays(lake) == ([], set())
    rest = case.run(lake)
    assert rest.partitions == len(case.before) - len(done)
    assert landed(lake) == case.after
    assert has_strays or strays(lake) == ([], set())
    if case.run is erase:
        delete_files(lake, rest.dead, rest.ended_at)
        assert lake.manifest.shrink()
        assert b"gone.example" not in everything_in(lake.root)
    return len(done)


FAILING = [
    ("manifest", "replace", 1),
    ("data.tasks.{}", "write_visits", 2),
    ("data.store.landing", "sha256_of", 2),
    ("data.store.landing", "move_durably", 2),
    ("data.manifest.manifest", "insert_files", 2),
    ("manifest", "replace", 2),
]
"""Functions that fail, with their owners and the failing calls: before the work, or after a step on the second day.
"""


@pytest.mark.parametrize("place", range(len(FAILING)), ids=[f"{name}-{call}" for _, name, call in FAILING])
def test_a_failure_leaves_each_day_unchanged_or_complete(case, tmp_path, monkeypatch, place):
    owner, name, call = FAILING[place]
    owner = owner.format(case.module)
    for is_killed in (False, True) if IS_LONG else [(place + RUNS.index(case.run)) % 2 == 1]:
        with opened(shutil.copytree(case.root, tmp_path / f"lake-{is_killed}")) as lake:
            with monkeypatch.context() as patch:
                if is_killed:  # nothing is cleaned up
                    patch.setattr("data.store.rewriting.discard", lambda *_: None)
                with failing_at(lake.manifest if owner == "manifest" else owner, name, call, is_done=call > 1):
                    case.run(lake)
            assert_whole_and_finished_by_the_next_run(case, lake, has_strays=is_killed)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("case", [erase], indirect=True)
def test_a_failure_after_all_days_are_erased_leaves_them_erased(case, tmp_path, is_done):
    with opened(shutil.copytree(case.root, tmp_path / "lake")) as lake:
        with failing_at(Files, "expire_now", 1, is_done):
            erase(lake)
        assert assert_whole_and_finished_by_the_next_run(case, lake) == 3


def test_a_stopped_rewrite_resumes_where_it_stopped(case, tmp_path):
    days = []

    def stop(done, whole):
        days.append(done)
        if len(days) == 2:
            raise KeyboardInterrupt

    with opened(shutil.copytree(case.root, tmp_path / "lake")) as lake:
        with pytest.raises(KeyboardInterrupt):
            case.run(lake, progress=stop)
        assert assert_whole_and_finished_by_the_next_run(case, lake) == 2


# Memory

VISITS = 2_000
"""Number of visits in each of the day's two files."""

REWRITES = {
    "compaction": lambda lake: Compactor(lake, lambda: NOW).run().partitions,
    "rollups": lambda lake: RollupBuilder(lake, lambda: NOW).run(),
    "erasure": lambda lake: Eraser(lake, lambda: NOW).run("acme", Criteria(short_code="a1")).partitions,
    "reclassification": lambda lake: Reclassifier(lake, lambda: NOW).run(["acme"]).partitions,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Closed lakes to copy, each with one day in two files.

    In one lake, the visits were classified by older rules. In the other, each visit has a kilobyte of random text; some
    visits are to no link, and some to links whose codes begin with Unicode's last character.
    """
    draw, codes = random.Random(1), [None, "a", "b", "\U0010ffff", "\U0010ffffz"]
    kinds = {
        "crowded": lambda n, _: {"short_code": f"a{n % 7}", "visitor": n, "rules_version": "older", "second": n},
        "long texts": lambda n, number: {
            "short_code": codes[n % len(codes)], "user_agent": draw.randbytes(512).hex(), "visitor": 2 * n + number,
            "second": draw.randrange(7200),
        },
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("made")
    for name, columns in kinds.items():
        with opened(folder / name, create=True) as lake:
            for number in range(2):
                rows = [columns(n, number) for n in range(VISITS)]
                at = datetime(2026, 3, 5, number)
                land(lake, "acme", [visit(visited_at=at + timedelta(seconds=row.pop("second")), **row) for row in rows])
    return folder


@pytest.fixture
def crowded(made, tmp_path):
    with opened(shutil.copytree(made / "crowded", tmp_path / "lake")) as lake:
        yield lake


@pytest.mark.parametrize("name", [name for name in REWRITES if name != "reclassification"])  # reads a file in parts
def test_a_day_with_more_visits_gets_more_memory(crowded, monkeypatch, name):
    monkeypatch.setattr(engines, "MIN_MEMORY", 3 << 20)
    monkeypatch.setattr(engines, "MEMORY_PER_VISIT", (256 << 20) // VISITS)
    assert REWRITES[name](crowded) == 1


def test_a_small_day_is_rewritten_in_192_mib(tmp_path):
    with engines.rewriting_engine(tmp_path) as engine:
        assert engine.execute("SELECT current_setting('memory_limit')").fetchone() == ("192.0 MiB",)


@pytest.mark.parametrize("name", REWRITES)
def test_a_day_that_exceeds_memory_stays_unchanged(crowded, monkeypatch, name):
    monkeypatch.setattr(engines, "MIN_MEMORY", 3 << 20)
    monkeypatch.setattr(engines, "MEMORY_PER_VISIT", 1)
    before = [file.path for file in crowded.manifest.files.live("acme")]
    with pytest.raises(LakeDamaged, match="Out of Memory"):
        REWRITES[name](crowded)
    assert [file.path for file in crowded.manifest.files.live("acme")] == before


@pytest.fixture
def long_texts(made, tmp_path):
    with opened(shutil.copytree(made / "long texts", tmp_path / "lake")) as lake:
        yield lake


def test_long_strings_are_merged_in_ranges_when_memory_is_short(long_texts, monkeypatch):
    """Anyone on the internet can send such strings; without ranges, the visits on their day would never be merged."""
    monkeypatch.setattr(engines, "MIN_MEMORY", 17 << 20)
    before = rows_of(long_texts)
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "_RANGES", (1,))
        with pytest.raises(LakeDamaged, match="Out of Memory"):
            Compactor(long_texts, lambda: NOW).run()
    assert Compactor(long_texts, lambda: NOW).run().files_after == 1
    after = rows_of(long_texts)
    places = [(row["short_code"] is None, row["short_code"] or "", row["visited_at"]) for row in after]
    assert places == sorted(places)
    assert sorted((row | {"signals": None} for row in after), key=str) == sorted(before, key=str)


@pytest.mark.parametrize(("visits", "ranges"), [(0, 1), (66_000, 1), (66_001, 2), (200_000, 4), (20_000_000, 8)])
def test_many_visits_are_merged_in_ranges(lake, monkeypatch, visits, ranges):
    for number in range(2):
        land(lake, "acme", [visit(visitor=number)])
    monkeypatch.setattr(compaction, "RANGE_VISITS", 2 * compaction.RANGE_VISITS / (visits or 1))
    tried, merged = [], compaction.merged_visits
    monkeypatch.setattr(compaction, "merged_visits", lambda *asked: tried.append(asked[2]) or merged(*asked))
    assert Compactor(lake, lambda: NOW).run().files_after == 1
    assert tried == [ranges]
    assert len(rows_of(lake)) == 2


def test_long_strings_are_erased_when_memory_is_short(long_texts, monkeypatch):
    Compactor(long_texts, lambda: NOW).run()
    before = rows_of(long_texts)
    monkeypatch.setattr(engines, "MIN_MEMORY", 15 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "ROW_GROUP", 2 * VISITS)
        with pytest.raises(LakeDamaged, match="Out of Memory"):
            Eraser(long_texts, lambda: NOW).run("acme", Criteria(visitor=1))
    monkeypatch.setattr(erasure, "ROW_GROUP", 200)
    assert Eraser(long_texts, lambda: NOW).run("acme", Criteria(visitor=1)).visits == 1
    assert rows_of(long_texts) == [row for row in before if row["visitor"] != 1]


def test_long_strings_are_reclassified_when_memory_is_short(long_texts, monkeypatch):
    Compactor(long_texts, lambda: NOW).run()
    before = rows_of(long_texts)
    expected = Reclassifier(long_texts, lambda: NOW).run(["acme"], dry_run=True)
    assert expected.changed == 2 * VISITS
    monkeypatch.setattr(engines, "MIN_MEMORY", 18 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(reclassification, "ROW_GROUP", 2 * VISITS)
        with pytest.raises(LakeDamaged, match="Out of Memory"):
            Reclassifier(long_texts, lambda: NOW).run(["acme"])
    monkeypatch.setattr(reclassification, "ROW_GROUP", 500)
    assert Reclassifier(long_texts, lambda: NOW).run(["acme"], dry_run=True) == expected
    assert Reclassifier(long_texts, lambda: NOW).run(["acme"]) == expected
    key = itemgetter("short_code", "visited_at", "visitor", "user_agent")
    assert [*map(key, rows_of(long_texts))] == [*map(key, before)]
    assert Reclassifier(long_texts, lambda: NOW).run(["acme"]).rewritten == 0


# Policies


@pytest.mark.parametrize(
    ("policy", "may_land", "may_rewrite"),
    [
        (policies.ERASING, False, False),
        (policies.RECLASSIFYING, False, False),
        (policies.RETAINING, True, False),
        (policies.MERGING, True, True),
        (policies.JUDGING, True, True),
    ],
)
def test_a_policy_decides_which_tasks_wait(lake, policy, may_land, may_rewrite):
    """`rewrite_each` acquires the locks for merging and judging, and skips organizations that other programs are
    rewriting.
    """
    free = []

    def look(_):
        folder = os.open(lake.root, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(True)
        except BlockingIOError:
            free.append(False)
        finally:
            os.close(folder)
        with lake.rewrite_lock(False, "acme") as is_free:
            free.append(is_free)

    assert rewriting.rewrite(lake, "acme", policy, look, now=lambda: NOW, grace=timedelta(0)) == []
    assert free == [may_land, may_rewrite]

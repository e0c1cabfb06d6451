"""A compaction, erasure or reclassification that fails, is stopped or killed on its way: no day is ever half of one and
half of the other, and the next run does the rest. At each step some of them fail and the others are killed; with
`TRAFFIC_FAULTS=all` all of them do both.
"""

import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from data.maintenance import merge_plan
from data.maintenance.compaction import Compactor
from data.maintenance.erasure import Criteria, Eraser, delete_files, truncate_wal
from data.maintenance.reclassification import Reclassifier
from data.store.lake import Lake
from tests.faults.trials import IS_LONG
from tests.support.lakes import everything_in, fail_at, landed, opened, strays
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
FILES = [(3, 2, 1), (4, 1, 2), (4, 3, 0), (4, 0, 1), (5, 2, 0)]
"""The day of each file, how many of its visits are to be erased, and how many are not."""


def compact(lake, **how):
    return Compactor(lake, lambda: NOW).run(**how)


def erase(lake, **how):
    return Eraser(lake).run("acme", Criteria(domain="gone.example"), **how)


def reclassify(lake, **how):
    return Reclassifier(lake).run(["acme"], **how)


class Case(NamedTuple):
    """A closed lake, to be copied, and what is to be done with it; its visits before and after, and its epoch then."""

    run: Callable[..., Any]
    module: str
    root: Any
    before: dict
    after: dict
    epoch: int


@pytest.fixture(scope="module", autouse=True)
def day_by_day():
    """Days are merged one by one, as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_plan, "VISITS_AT_ONCE", 0)
        yield


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A closed lake of three days in five files, whose visits are of older rules."""
    root = tmp_path_factory.mktemp("mixed") / "lake"
    with closing((lake := Lake(root, create=True)).manifest):
        for number, (day, gone, kept) in enumerate(FILES):
            rows = [{"domain": "gone.example", "user_agent": GPTBOT}] * gone + [{"user_agent": CHROME}] * kept
            land(lake, "acme", [visit(visited_at=datetime(2026, 3, day, 12, number), **row) for row in rows])
    return root


RUNS = (compact, erase, reclassify)


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: run.__name__)
def case(request, mixed, day_by_day, tmp_path_factory):
    module = {compact: "compaction", erase: "erasure", reclassify: "reclassification"}[request.param]
    with opened(shutil.copytree(mixed, tmp_path_factory.mktemp("case") / "done")) as lake:
        before = landed(lake)
        assert request.param(lake).partitions == len(before) == 3
        return Case(request.param, module, mixed, before, landed(lake), lake.manifest.epoch("acme"))


def assert_whole_and_finished_by_the_next_run(case, lake, has_strays=False):
    """Each day is as it was or as it will be; nothing else is there, and another run makes the rest so."""
    left = landed(lake)
    done = [day for day in case.before if left.get(day) == case.after.get(day)]
    assert left == {
        day: files[day] for day in case.before if day in (files := case.after if day in done else case.before)
    }
    assert lake.manifest.epoch("acme") == case.epoch * len(done) // len(case.before)
    assert has_strays or strays(lake) == ([], set())
    rest = case.run(lake)
    assert rest.partitions == len(case.before) - len(done)
    assert landed(lake) == case.after
    assert has_strays or strays(lake) == ([], set())
    if case.run is erase:
        delete_files(lake, rest.dead, rest.ended_at)
        assert truncate_wal(lake)
        assert b"gone.example" not in everything_in(lake.root)
    return len(done)


STEPS = {
    "write_visits": "data.maintenance.{}",
    "sha256_of": "data.store.landing",
    "move_durably": "data.store.landing",
    "insert_files": "data.store.manifest",
    "replace_files": "manifest",
}
"""What has the function of each step."""


FAILING = [("replace_files", 1), *((name, 2) for name in STEPS)]
"""Before anything is done, or after each step of the second day."""


@pytest.mark.parametrize("place", range(len(FAILING)), ids=[f"{name}-{call}" for name, call in FAILING])
def test_a_failure_leaves_each_day_as_it_was_or_done(case, tmp_path, monkeypatch, place):
    name, call = FAILING[place]
    owner = STEPS[name].format(case.module)
    for is_killed in (False, True) if IS_LONG else [(place + RUNS.index(case.run)) % 2 == 1]:
        with opened(shutil.copytree(case.root, tmp_path / f"lake-{is_killed}")) as lake:
            with monkeypatch.context() as patch:
                if is_killed:  # nothing is tidied up
                    patch.setattr(f"data.maintenance.{case.module}.discard", lambda *_: None)
                fail_at(patch, lake.manifest if owner == "manifest" else owner, name, call, is_done=call > 1)
                with pytest.raises(OSError, match="No space left"):
                    case.run(lake)
            assert_whole_and_finished_by_the_next_run(case, lake, has_strays=is_killed)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("case", [erase], indirect=True)
def test_a_failure_after_all_days_are_erased_leaves_them_erased(case, tmp_path, monkeypatch, is_done):
    with opened(shutil.copytree(case.root, tmp_path / "lake")) as lake:
        with monkeypatch.context() as patch:
            fail_at(patch, "data.maintenance.erasure", "expire_now", 1, is_done)
            with pytest.raises(OSError, match="No space left"):
                erase(lake)
        assert assert_whole_and_finished_by_the_next_run(case, lake) == 3


def test_what_is_stopped_goes_on_where_it_stopped(case, tmp_path):
    days = []

    def stop(done, whole):
        days.append(done)
        if len(days) == 2:
            raise KeyboardInterrupt

    with opened(shutil.copytree(case.root, tmp_path / "lake")) as lake:
        with pytest.raises(KeyboardInterrupt):
            case.run(lake, progress=stop)
        assert assert_whole_and_finished_by_the_next_run(case, lake) == 2

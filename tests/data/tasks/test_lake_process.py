"""Memory-intensive work in a separate process: results and failures."""

import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from data.errors import Conflict, LakeDamaged, TrafficError
from data.tasks.compaction import Compactor, merge_day
from data.tasks.lake_process import LakeProcess
from data.tasks.merge_plan import MAX_OPEN_FILES
from tests.support.lakes import flipped
from tests.support.visits import land, visit

DAY = datetime(2026, 3, 4, 12)
NOW = DAY.replace(tzinfo=UTC) + timedelta(days=1)
MERGE = (merge_day, "acme", str(DAY.date()), NOW.isoformat(), "0")


@pytest.fixture(autouse=True)
def days(lake):
    """A past day with two files, and the day before it with one."""
    for number in range(2):
        land(lake, "acme", [visit(visited_at=DAY, visitor=number)])
    land(lake, "acme", [visit(visited_at=DAY - timedelta(days=1))])


@pytest.fixture
def slow_start(tmp_path, monkeypatch):
    """Make each new Python process wait before it starts."""
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(60)")
    monkeypatch.syspath_prepend(str(tmp_path))


def files(lake):
    return sorted(
        (file.day.day, file.visits, bool(file.behaviour_version)) for file in lake.manifest.files.live("acme")
    )


def merge_while(merging, happens):
    """Merge, and run an action once the process is running; check that its spill files are deleted and no day has
    changed."""

    def watch():
        while not merging._running:
            time.sleep(0.005)
        (merging._lake.staging / "engine-1").mkdir()
        (merging._lake.staging / "spilling-1").touch()  # the lock of an engine that has ended
        happens()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        merging.run(*MERGE)
    finally:
        watcher.join()
        assert [*merging._lake.staging.glob("engine-*")] == []
        assert files(merging._lake) == [(3, 1, False), (4, 1, False), (4, 1, False)]


def test_only_the_given_day_is_merged_and_judged(lake):
    for _ in range(2):  # nothing is left to do the second time
        LakeProcess(lake).run(*MERGE)
        assert files(lake) == [(3, 1, False), (4, 2, True)]


def test_a_past_day_that_still_receives_visits_is_not_judged(lake, monkeypatch):
    monkeypatch.setattr("data.tasks.compaction.MAX_VISITS_IN_SERVER", 1)
    for number in range(MAX_OPEN_FILES):
        land(lake, "acme", [visit(visited_at=DAY, visitor=number)])
    process = LakeProcess(lake)
    assert Compactor(lake, lambda: NOW, timedelta(hours=1), process).run().partitions == 1
    assert files(lake) == [(3, 1, False), (4, MAX_OPEN_FILES + 2, False)]
    assert process._running


def test_a_damaged_file_is_reported(lake):
    (first, _) = lake.manifest.files.live("acme", DAY.date(), DAY.date())
    with flipped(lake.root / first.path), pytest.raises(LakeDamaged, match=first.path):
        LakeProcess(lake).run(*MERGE)
    assert len(files(lake)) == 3


def test_a_call_is_not_retried_for_an_hour_after_a_kill(lake, slow_start, monkeypatch):
    merging = LakeProcess(lake)
    message = "^the process for merge_day acme 2026-03-04 exited with status -9, probably out of memory.$"
    with pytest.raises(TrafficError, match=message):
        merge_while(merging, lambda: os.kill(merging._running.pid, signal.SIGKILL))
    monkeypatch.undo()  # a process starts immediately
    first = merging._running
    with pytest.raises(TrafficError, match=message):
        merging.run(*MERGE[:3], (NOW + timedelta(minutes=30)).isoformat(), "0")
    assert merging._running is first
    merging.run(merge_day, "acme", str(DAY.date() - timedelta(days=1)), *MERGE[3:])
    assert files(lake) == [(3, 1, True), (4, 1, False), (4, 1, False)]
    monkeypatch.setattr("data.tasks.lake_process.RETRY_SECONDS", 0.0)
    merging.run(*MERGE)
    assert files(lake) == [(3, 1, True), (4, 2, True)]


def test_an_interrupted_process_ends_and_changes_nothing(lake, slow_start):
    merging = LakeProcess(lake)
    for interrupted in (lambda: merge_while(merging, merging.interrupt), lambda: merging.run(*MERGE)):
        with pytest.raises(Conflict):
            interrupted()
        assert merging._running.poll() == -signal.SIGKILL

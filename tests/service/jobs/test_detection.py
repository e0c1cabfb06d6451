"""The daily run of detectors and measurements: a failure stops neither other jobs nor other organizations."""

import asyncio
import threading
from contextlib import closing
from datetime import timedelta

import pytest

from data.tasks.compaction import Compactor
from queries import DETECTORS, QueryFailed, Warehouse
from service.jobs.daily import DailyDetection, last_run
from service.jobs.detection import Detection
from service.ops.maintenance import Maintenance
from tests.service.jobs.findings import NOW, broken, ship
from tests.support.clock import Clock
from tests.support.lakes import files_of
from tests.support.manifests import database_of
from tests.support.visits import land, visit

pytestmark = pytest.mark.usefixtures("few_detectors")
AT, DAY = NOW.replace(tzinfo=None), timedelta(days=1)


@pytest.fixture
def clock():
    return Clock(NOW)


@pytest.fixture
def daily(lake, jobs, clock):
    """The daily detection in the lake."""
    with closing(DailyDetection(lake, jobs, clock, lambda seconds: Warehouse(lake, [], seconds=seconds))) as detection:
        yield detection


@pytest.fixture
def detection(lake, daily):
    """The daily detection in a lake with two organizations' visits."""
    for organization in ("acme", "other"):
        land(lake, organization, [visit(visited_at=AT - 2 * DAY)])
    Compactor(lake, lambda: NOW).run()
    return daily


@pytest.fixture
def ran(jobs):
    """Return the days of the last runs for the organizations acme and other."""
    return lambda: [last_run(jobs.database, name) for name in ("acme", "other")]


@pytest.fixture
def shipped(jobs, only):
    """Return the id of acme's job that was shipped five days ago and is waiting for its outcome."""
    jobs.upsert(broken(), NOW)
    job_id = only().id
    ship(jobs, job_id, shipped_at=NOW - 5 * DAY)
    return job_id


def test_a_damaged_file_does_not_make_a_detection_run_repeat(detection, shipped, ran, lake, only, caplog):
    (file,) = files_of(lake)
    (lake.root / file.path).write_bytes(b"damaged")
    while detection.run_next():
        pass
    assert ran() == [NOW.date()] * 2
    assert only().outcome.status == "waiting"
    assert f"the outcome of {shipped} was not measured" in caplog.text


def test_a_failing_organization_does_not_delay_the_others(detection, shipped, ran, jobs):
    with jobs.database.transaction() as connection:  # no code writes this; it stands for any bug in the code
        connection.execute("UPDATE implementations SET shipped_at = 'never'")
    with pytest.raises(ValueError, match="never"):
        detection.run_next()
    assert detection.run_next()
    assert ran() == [None, NOW.date()]
    with pytest.raises(ValueError, match="never"):
        detection.run_next()


def test_an_interrupted_detection_run_is_not_recorded(detection, shipped, jobs, lake, only, ran):
    cancelled = threading.Event()
    cancelled.set()
    with closing(Warehouse(lake, [])) as warehouse:
        assert Detection(warehouse, lake, jobs, "acme", cancelled).measure_outcomes(NOW) == ({}, {})
    detection.interrupt()
    detection.run_next()
    assert (only().outcome.checked_at, ran()) == (None, [None, None])


def fewer_sent(lake, days=range(30)):
    """Land visits from the given numbers of days ago: an AI product sends two people a day, but none in the last 14
    days."""
    sent, visits = {"bot_category": "ai_referral", "agent_kind": "referral", "ai_source": "ChatGPT"}, []
    for ago in days:
        for hours in (1, 8, 16, 23):
            person = {"visitor": 24 * ago + hours, "user_agent": f"Mozilla/5.0 ({ago % 4})"}
            columns = {"short_code": "sale", "path": "/sale"} | person | (sent if ago > 14 and hours < 10 else {})
            visits.append(visit(visited_at=AT.replace(hour=hours) - ago * DAY, **columns))
    land(lake, "acme", visits)


def found(lake, kind="referral_drop"):
    with closing(Warehouse(lake)) as warehouse:
        return Detection(warehouse, lake, None, "acme").find(DETECTORS[kind], NOW.date())


def test_days_are_compared_once_all_are_judged(lake):
    fewer_sent(lake)
    assert found(lake) == []
    Compactor(lake, lambda: NOW).run()
    assert [one.subject["short_code"] for one in found(lake)] == ["sale"]
    land(lake, "acme", [visit(visited_at=AT - 9 * DAY)])
    assert found(lake) == []
    lake.manifest.behaviour.switch("acme", on=False)
    assert len(found(lake)) == 1


def test_days_are_not_compared_when_a_log_is_missing(lake):
    lake.manifest.behaviour.switch("acme", on=False)
    for days in (range(10, 30), range(8)):
        fewer_sent(lake, days)
    assert found(lake) == []
    fewer_sent(lake, [8, 9])
    assert len(found(lake)) == 1
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE batches SET domain = 'other.example'")  # whose logs say nothing about this one
    assert found(lake) == []


def failing(lake, *days):
    """Land ten failing requests for a path, from each of the given numbers of days ago."""
    people = [{"visitor": number, "browser": f"{number}", "user_agent": f"{number}"} for number in range(10)]
    moments = [AT - ago * DAY for ago in days]
    land(lake, "acme", [visit(visited_at=at, path="/pay", status=500, **one) for at in moments for one in people])


def test_detectors_leave_out_unjudged_days(lake):
    failing(lake, *range(1, 9))
    Compactor(lake, lambda: NOW).run()
    failing(lake, 9, 10)
    assert [one.row["errors"] for one in found(lake, "server_errors")] == [80]
    lake.manifest.behaviour.switch("acme", on=False)
    assert [one.row["errors"] for one in found(lake, "server_errors")] == [100]


def test_the_daily_run_waits_until_past_days_are_judged(lake, jobs, only, daily, clock, ran):
    failing(lake, 1, 2, 3, 40)
    assert not daily.run_next()
    assert (ran()[0], jobs.of("acme")) == (None, [])
    Compactor(lake, lambda: NOW).run()
    failing(lake, 0, 50)  # neither today nor days that are not examined
    clock.now += timedelta(minutes=10)
    assert daily.run_next()
    assert (ran()[0], only().type) == (NOW.date(), "server_errors")


def test_the_wait_for_unjudged_days_restarts_when_one_is_judged(lake, daily, clock, ran):
    failing(lake, 1, 2)
    assert not daily.run_next()
    clock.now += timedelta(hours=2)
    Compactor(lake, lambda: NOW - DAY).run()
    assert not daily.run_next()
    clock.now += timedelta(hours=2, minutes=59)
    assert not daily.run_next()
    clock.now += timedelta(minutes=1)
    assert daily.run_next()
    assert ran()[0] == clock.now.date()


@pytest.fixture
def in_process(lake, jobs, monkeypatch):
    """Return a function that makes the daily detection, with this much memory, in a lake where acme has more visits
    than the server reads itself."""

    def opened(memory="100MB"):
        failing(lake, 1, 2, 3)
        Compactor(lake, lambda: NOW).run()
        monkeypatch.setattr("service.jobs.daily.MAX_VISITS_IN_SERVER", 29)
        return DailyDetection(lake, jobs, lambda: NOW, None, memory)

    return opened


def test_an_organization_with_many_visits_gets_its_own_process(in_process, jobs, only):
    daily = in_process()
    assert [daily.run_next(), daily.run_next(), daily.failures] == [True, False, 0]
    assert only().type == "server_errors"
    assert jobs.database.rows("SELECT day, findings FROM detection_runs") == [(NOW.date().isoformat(), 1)]


@pytest.mark.parametrize(
    ("memory", "is_damaged", "problem"),
    [("100MB", True, "the detector server_errors did not run for acme: "), ("1MB", False, "Out of Memory Error"),
     ("much", False, "the process for detect_jobs acme much exited with status 1: ")],  # before it can record its run
    ids=["damaged", "memory", "engine"],
)  # fmt: skip
def test_a_failed_process_is_logged_and_not_retried_that_day(
    in_process, jobs, ran, lake, caplog, memory, is_damaged, problem
):
    daily = in_process(memory)
    for file in files_of(lake) if is_damaged else ():
        (lake.root / file.path).write_bytes(b"damaged")
    assert [daily.run_next(), daily.run_next(), daily.failures] == [True, False, 1]
    assert problem in caplog.text
    assert (ran()[0], jobs.of("acme")) == (NOW.date(), [])


def test_an_interrupted_process_changes_nothing(in_process, jobs, ran, caplog):
    daily = in_process()
    daily.interrupt()
    daily.run_next()
    assert (jobs.of("acme"), ran()[0], daily.failures, caplog.text) == ([], None, 0, "")


@pytest.mark.parametrize("runs", [[True, True, False], [True]], ids=["ends by itself", "server ends"])
def test_one_engine_serves_all_runs_of_a_day_and_is_then_closed(detection, lake, control, ran, runs):
    assert detection.run_next()
    engine = detection._engine
    engine.probe()
    for more in runs[1:]:
        assert detection._engine is engine
        assert detection.run_next() is more
    if runs == [True]:
        asyncio.run(Maintenance(lake, control, lambda: NOW, detection=detection).end())
    assert (ran(), detection._engine) == ([NOW.date(), NOW.date() if runs[1:] else None], None)
    with pytest.raises(QueryFailed, match="closed"):
        engine.probe()

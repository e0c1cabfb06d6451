"""Each time a source of visits falls silent, there is one job until visits arrive again."""

import os
import time
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from data.ingest.drop_follower import DropFollower
from data.ingest.dropped import open_drop
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.manifest.arrivals import silences
from data.store.pending import enqueue, flush_all
from service.jobs.silence import open_silences, update_silences
from tests.faults.lakes import line
from tests.service.jobs.findings import ANNA, NOW
from tests.support.clock import Clock
from tests.support.manifests import database_of
from tests.support.visits import packed, visit

HOUR, WEEK = timedelta(hours=1), timedelta(weeks=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MONDAY = datetime(2026, 4, 13, 12, tzinfo=UTC)


def usual(last, number=2, hours=range(24 * 7 * 4 + 24)):
    """Return the times of `number` visits in each of `hours`, counted back from `last`."""
    return [last - ago * HOUR + timedelta(minutes=5 * turn) for ago in hours for turn in range(number)]


def reported(lake, *moments, now=NOW):
    """Report a visit at each of these times, and flush the visits to files."""
    rows = [visit(visited_at=moment.replace(tzinfo=None)) for moment in moments]
    enqueue(lake.manifest, [("acme", packed(rows))], now)
    flush_all(lake)


def rows(moments, source="follow"):
    hours = [(moment - EPOCH) // HOUR for moment in moments]
    return [(source, "", hour, hours.count(hour)) for hour in sorted(set(hours))]


@pytest.mark.parametrize(
    ("moments", "is_silent"),
    [
        (usual(MONDAY - 7 * HOUR), True),
        (usual(MONDAY - 6 * HOUR), False),  # five whole hours
        (usual(MONDAY - 30 * HOUR, hours=range(24 * 7 * 4)), True),
        (usual(MONDAY - 7 * HOUR, 1), False),  # six visits in six hours
        (usual(MONDAY - 7 * HOUR, hours=range(24 * 7 * 3)), False),  # the fourth week is not known
        ([at for at in usual(MONDAY - 7 * HOUR) if not MONDAY - 2 * WEEK - 7 * HOUR < at < MONDAY - 2 * WEEK], False),
        ([at for at in usual(MONDAY - 60 * HOUR) if at.weekday() in (0, 5)], True),  # on two days of the week
        ([at for at in usual(MONDAY - 13 * HOUR) if at.hour > 17], False),  # in the evening
        (usual(MONDAY + 5 * HOUR, hours=range(12, 24 * 7 * 5)), True),
        ([], False),
    ],
)  # fmt: skip
def test_six_hours_without_visits_after_four_weeks_are_a_silence(moments, is_silent):
    assert bool(silences(rows(moments), "UTC", MONDAY)) is is_silent


def test_hours_in_earlier_weeks_follow_local_clocks():
    """Ten visits came every Friday from 8 to 9 in Berlin, where clocks changed on 29 March."""
    before = [datetime(2026, 3, day, 7, 30, tzinfo=UTC) for day in (13, 20, 27)]
    moments = [*before, datetime(2026, 4, 3, 6, 30, tzinfo=UTC)] * 10
    for zone, first in (("Europe/Berlin", 7), ("UTC", 8)):
        for hour in (first - 1, first):
            found = silences(rows(moments), zone, datetime(2026, 4, 10, hour, tzinfo=UTC))
            assert bool(found) is (hour == first), (zone, hour)


def test_daily_deliveries_can_be_twelve_hours_late():
    for hours, is_silent in ((24, False), (30, False), (36, True)):
        moments = [MONDAY - hours * HOUR - day * 24 * HOUR for day in range(30) for _ in range(10)]
        assert bool(silences(rows(moments, "drop"), "UTC", MONDAY)) is is_silent, hours


def test_a_silence_lasts_through_quiet_hours_and_for_months():
    moments = [at for at in usual(MONDAY - 20 * HOUR) if at.hour < 17]
    for ago in (HOUR, 12 * HOUR, WEEK, 20 * WEEK):
        (silence,) = silences(rows(moments), "UTC", MONDAY + ago)
        assert silence.since == MONDAY - 19 * HOUR


def test_a_silent_source_is_one_job_that_new_visits_resolve(lake, jobs, only):
    reported(lake, *usual(NOW - 7 * HOUR))
    update_silences(lake, jobs, NOW)
    update_silences(lake, jobs, NOW + HOUR)
    job = only()
    assert (job.type, job.status, job.priority, job.evidence) == ("silent_source", "new", "high", None)
    assert "12, 12, 12, 12" in job.summary
    assert open_silences(jobs) == {"acme": 1}
    reported(lake, NOW + 2 * HOUR)
    update_silences(lake, jobs, NOW + 2 * HOUR)
    assert (only().status, only().history[-1].action, open_silences(jobs)) == ("resolved", "arrive", {})
    update_silences(lake, jobs, NOW + 12 * HOUR)
    assert [one.status for one in jobs.of("acme")] == ["new", "resolved"]
    jobs.act("acme", jobs.of("acme")[0].id, "dismiss", ANNA, NOW + 12 * HOUR)  # then there is no further job
    update_silences(lake, jobs, NOW + 24 * HOUR)
    assert ([one.status for one in jobs.of("acme")], open_silences(jobs)) == (["dismissed", "resolved"], {})


def test_a_source_with_pending_reports_is_not_silent(lake, jobs):
    reported(lake, *usual(NOW - 7 * HOUR))
    enqueue(lake.manifest, [("acme", packed([visit(visited_at=NOW.replace(tzinfo=None))]))], NOW)
    update_silences(lake, jobs, NOW)
    assert jobs.of("acme") == []


def test_a_followed_log_is_a_source_but_an_imported_log_is_not(lake, jobs, tmp_path):
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    texts = [line(f"/{number}", when=at) for number, at in enumerate(sorted(usual(now - 7 * HOUR)))]
    (tmp_path / "old.log").write_text("".join(texts))
    Importer(lake).run(tmp_path / "old.log", Options("other", "old.example"))
    assert database_of(lake.manifest).rows("SELECT * FROM arrivals") == []
    log, cut = tmp_path / "access.log", len(texts) // 2
    for text in ("".join(texts[:cut])[:-1], "\n", "".join(texts[cut:])):  # a line is read before it is complete
        with log.open("a") as file:
            file.write(text)
        follower = Follower(lake, Importer(lake), log, Options("acme", "go.example"), notify=pytest.fail)
        follower.tick()
        follower.close()
    counts = database_of(lake.manifest).rows(
        "SELECT source, domain, sum(visits), min(visits), max(visits) FROM arrivals"
    )
    assert counts == [("follow", "go.example", len(texts), 2, 2)]
    update_silences(lake, jobs, now)
    (job,) = jobs.of("acme")
    assert (job.domain, job.title) == ("go.example", "Visits stopped arriving: the followed log for go.example")


def test_a_folder_without_new_objects_is_a_job_until_one_is_read(lake, jobs, only, tmp_path):
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    folder, clock = tmp_path / "drop", Clock(now)
    folder.mkdir()
    importer = Importer(lake, clock)
    follower = DropFollower(lake, importer, open_drop(str(folder)), Options("acme", "go.example"), notify=print)

    def deliver(at):
        clock.now = at
        path = folder / f"{at:%Y%m%dT%H}.log"
        path.write_text("".join(line(f"/{number}", when=at - 30 * HOUR) for number in range(10))[:-1])
        os.utime(path, (at.timestamp() - 3_600,) * 2)
        follower.tick()

    for day in (30, 29, 28, 23, 22, 21, 16, 15, 14, 9, 8, 7, 2):  # the same hours of four weeks
        deliver(now - day * 24 * HOUR)
    assert follower.totals.visits == 13 * 10
    update_silences(lake, jobs, now - 24 * HOUR)
    assert jobs.of("acme") == []
    update_silences(lake, jobs, now)
    job = only()
    assert job.title == "Visits stopped arriving: the followed folder or bucket for go.example"
    assert "10, 10, 10, 10" in job.summary
    deliver(now)
    update_silences(lake, jobs, now)
    assert only().status == "resolved"


def test_arrivals_older_than_five_weeks_are_deleted(lake):
    reported(lake, *usual(NOW - 10 * WEEK), now=NOW - 10 * WEEK)
    reported(lake, NOW - 6 * WEEK, NOW - HOUR)
    assert database_of(lake.manifest).rows("SELECT hour, visits FROM arrivals") == [((NOW - HOUR - EPOCH) // HOUR, 1)]


def test_a_server_counts_silent_sources_in_its_metrics(lake, serving):
    now = datetime.now(UTC)
    reported(lake, *usual(now - 8 * HOUR), now=now)
    with serving(lake, monitor_port=0) as server, httpx2.Client(trust_env=False, verify=False, timeout=60) as client:
        ends_at = time.monotonic() + 60
        while "\ntraffic_silent_sources 1.0\n" not in (text := client.get(f"{server.monitor}/metrics").text):
            assert time.monotonic() < ends_at, text
            time.sleep(0.2)

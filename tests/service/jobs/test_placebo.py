"""A repair closes a job; the end of a burst, a flood of good answers and a general change do not; and false
improvements are counted."""

from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from data.tasks.compaction import Compactor
from queries import Warehouse
from service.jobs.detection import Detection
from service.jobs.placebo import placebo
from tests.service.jobs.findings import NOW, broken, people, ship
from tests.support.visits import land, visit

pytestmark = pytest.mark.usefixtures("few_detectors")
MIDNIGHT = datetime(NOW.year, NOW.month, NOW.day)  # visit times are in UTC, but have no time zone
DAY = timedelta(days=1)
FIRST, DAYS = datetime(2026, 1, 1), 64  # 64 days leave two days that have 28 before and 28 after, seven days apart
ERRORS = {
    "burst": lambda number: (30 if -5 <= number < 0 else 0, 10),
    "flood": lambda number: (10, 10),  # and two hundred requests of one visitor, all of which are answered
    "season": lambda number: (12 if number < 0 else number % 3,) * 2,
    "repair": lambda number: (12 if number < 0 else number % 3, 10 + number % 3),
}
"""Number of failing requests per day, for /pay and for another path, by the days since today."""


def visits_of(what, days):
    for number in days:
        midnight, (errors, others) = MIDNIGHT + number * DAY, ERRORS[what](number)
        yield from people(midnight, errors)
        yield from people(midnight, others, "/other")
        for one in range(200 if what == "flood" and number > 0 else 0):
            yield visit(visited_at=midnight + one * timedelta(minutes=5), domain="go.example.com", path="/pay",
                        visitor=77, status=200)  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_only_a_real_repair_closes_a_job(lake, jobs, what):
    lake.manifest.behaviour.switch("acme", on=False)  # otherwise only judged days count
    land(lake, "acme", visits_of(what, range(-28, 0)))
    with closing(Warehouse(lake)) as warehouse:
        Detection(warehouse, lake, jobs, "acme").update_jobs(NOW.date(), NOW)
        assert not [idle for idle in warehouse._engine._idle if idle.snapshot.in_memory]
        (job,) = (one for one in jobs.of("acme") if one.path == "/pay")
        assert job.type == "server_errors"
        ship(jobs, job.id)
        land(lake, "acme", visits_of(what, range(1, 30)))
        for day in (8, 15, 29):
            Detection(warehouse, lake, jobs, "acme").measure_outcomes(NOW + day * DAY)
    found = jobs.record("acme", job.id)
    expected = ("resolved", "improved", 7) if what == "repair" else ("reviewed", "unchanged", 28)
    assert (found.status, found.outcome.status, found.outcome.after.days) == expected
    assert (found.outcome.judged_by, found.outcome.others) == ("rate", 1)
    assert found.outcome.control_before.days >= 28


def test_false_improvements_are_counted_by_detector(lake, jobs, only, monkeypatch):
    days = [(FIRST + day * DAY, day) for day in range(DAYS)]
    steady = [one for at, day in days for one in people(at, 4 + day % 3, "/steady", 12)]
    ending = [one for at, day in days for one in people(at, 5 if day < 35 else 0, "/ending", 12)]
    land(lake, "acme", steady + ending)
    told = []
    with closing(Warehouse(lake)) as warehouse:

        def tried():
            found = placebo(Detection(warehouse, lake, jobs, "acme"), lambda *done: told.append(done))
            return {kind: counts for kind, counts in found.items() if counts}

        assert tried() == {}  # no day is judged yet
        assert told == [(0, 2), (1, 2)]
        Compactor(lake, lambda: NOW).run()
        assert tried() == {"server_errors": Counter(unchanged=2, improved=2)}
        jobs.upsert(broken("/steady", type="server_errors"), NOW)
        ship(jobs, only().id)
        assert tried() == {"server_errors": Counter(improved=2)}
        monkeypatch.setattr("service.jobs.placebo.MAX_CAUSES", 0)
        assert tried() == {}

"""A job is closed by a repair: not by what ends by itself, is drowned, or changes everywhere."""

from contextlib import closing
from datetime import datetime, timedelta

import pytest

from data.store.behaviour import switch_behaviour
from queries import Warehouse
from queries.variables import IN_MEMORY
from service.jobs.detection import Detection
from tests.service.jobs.findings import NOW, ship
from tests.support.visits import land, visit

pytestmark = pytest.mark.usefixtures("few_detectors")
MIDNIGHT = datetime(NOW.year, NOW.month, NOW.day)  # visits are in UTC, without saying so
DAY = timedelta(days=1)


def people(number, errors, path="/pay", visitors=40):
    """The requests for a path of a day, by its number from today on; this many of them fail, each of another person."""
    for one in range(visitors):
        yield visit(visited_at=MIDNIGHT + number * DAY + one * timedelta(minutes=30), domain="go.example.com",
                    path=path, visitor=1_000 * (number + 100) + one, status=500 if one < errors else 200,
                    user_agent=f"Mozilla/5.0 ({one % 4})")  # fmt: skip


def flood(number):
    """Two hundred requests for /pay by one visitor, all of which are answered."""
    for one in range(200):
        yield visit(visited_at=MIDNIGHT + number * DAY + one * timedelta(minutes=5), domain="go.example.com",
                    path="/pay", visitor=77, status=200)  # fmt: skip


def burst(number):
    return [*people(number, 30 if -5 <= number < 0 else 0), *people(number, 10, "/other")]


def drowned(number):
    return [*people(number, 10), *people(number, 10, "/other"), *(flood(number) if number > 0 else ())]


def season(number):
    errors = 12 if number < 0 else number % 3
    return [*people(number, errors), *people(number, errors, "/other")]


def repaired(number):
    return [*people(number, 12 if number < 0 else number % 3), *people(number, 10 + number % 3, "/other")]


@pytest.mark.parametrize(
    ("happening", "status", "outcome", "days"),
    [
        (burst, "reviewed", "unchanged", 28),
        (drowned, "reviewed", "unchanged", 28),
        (season, "reviewed", "unchanged", 28),
        (repaired, "resolved", "improved", 7),
    ],
)
def test_a_repair_closes_a_job_and_a_burst_a_flood_and_a_season_do_not(lake, jobs, happening, status, outcome, days):
    switch_behaviour(lake.manifest, "acme", on=False)  # otherwise only judged days count
    land(lake, "acme", [one for number in range(-28, 0) for one in happening(number)])
    with closing(Warehouse(lake)) as warehouse:
        Detection(warehouse, lake, jobs, "acme").update_jobs(NOW.date(), NOW)
        assert not [idle for idle in warehouse._engine._idle if IN_MEMORY in idle.variables]
        (job,) = (one for one in jobs.of("acme") if one.path == "/pay")
        assert job.type == "server_errors"
        ship(jobs, job.id)
        land(lake, "acme", [one for number in range(1, 30) for one in happening(number)])
        for day in (8, 15, 29):
            Detection(warehouse, lake, jobs, "acme").measure_outcomes(NOW + day * DAY)
    found = jobs.record("acme", job.id)
    assert (found.status, found.outcome.status, found.outcome.after.days) == (status, outcome, days)
    assert (found.outcome.judged_by, found.outcome.others) == ("rate", 1)
    assert found.outcome.control_before.days >= 28

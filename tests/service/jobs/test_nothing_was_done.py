"""A job that is approved and shipped although nothing was done: what ends by itself, or is drowned, closes it never."""

from contextlib import closing
from datetime import datetime, timedelta

import pytest

from data.maintenance.compaction import Compactor
from queries import Warehouse
from service.jobs.detection import measure_outcomes, update_jobs
from service.jobs.implementations import Draft
from tests.service.jobs.findings import ANNA, NOW
from tests.support.visits import land, visit

MIDNIGHT = datetime(NOW.year, NOW.month, NOW.day)  # visits are in UTC, without saying so
DAY = timedelta(days=1)


def people(number, errors, visitors=40):
    """The requests for /pay of a day, by its number from today on; this many of them fail, each of another person."""
    for one in range(visitors):
        yield visit(visited_at=MIDNIGHT + number * DAY + one * timedelta(minutes=30), domain="go.example.com",
                    path="/pay", visitor=1_000 * (number + 100) + one, status=500 if one < errors else 200)  # fmt: skip


def flood(number):
    """A thousand requests for /pay by one visitor, all of which are answered."""
    for one in range(1_000):
        yield visit(visited_at=MIDNIGHT + number * DAY + one * timedelta(seconds=60), domain="go.example.com",
                    path="/pay", visitor=77, status=200)  # fmt: skip


def burst(number):
    return people(number, 30 if -5 <= number < 0 else 0)


def drowned(number):
    return [*people(number, 10), *(flood(number) if number > 0 else ())]


@pytest.mark.parametrize("happening", [burst, drowned])
def test_neither_a_burst_that_ends_by_itself_nor_a_flood_closes_a_job(lake, jobs, only, happening):
    land(lake, "acme", [one for number in range(-28, 0) for one in happening(number)])
    Compactor(lake, lambda: NOW).run()
    with closing(Warehouse(lake)) as warehouse:
        update_jobs(warehouse, jobs, "acme", NOW.date(), NOW)
        job = only()
        assert (job.type, job.path) == ("server_errors", "/pay")
        jobs.act("acme", job.id, "approve_fix", ANNA, NOW)
        jobs.attach("acme", job.id, Draft("manual", note="nothing was done"), ANNA, NOW)
        jobs.set_implementation_status("acme", job.id, 1, ANNA, NOW, status="shipped")
        land(lake, "acme", [one for number in range(1, 30) for one in happening(number)])
        for day in (8, 15, 29):
            later = NOW + day * DAY
            Compactor(lake, lambda now=later: now).run()
            measure_outcomes(warehouse, lake, jobs, "acme", later)
            assert only().status in {"approved", "reviewed"}
    assert (only().outcome_status, only().outcome.judged_by) == ("unchanged", "rate")
    assert only().outcome.after.days == 28

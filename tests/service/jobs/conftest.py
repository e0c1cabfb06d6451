"""The jobs of a fresh lake."""

import pytest

from service.control_database import ControlDatabase
from service.jobs.store import Jobs


@pytest.fixture
def jobs(lake):
    jobs = Jobs(ControlDatabase(lake))
    yield jobs
    jobs.database.close()


@pytest.fixture
def only(jobs):
    """The record of the only job of acme."""

    def only():
        (row,) = jobs.of("acme")
        return jobs.record("acme", row.id)

    return only

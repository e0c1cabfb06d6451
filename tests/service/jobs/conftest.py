"""Fixtures for jobs in a fresh lake."""

import pytest

from queries import DETECTORS
from service.core.control_database import ControlDatabase
from service.jobs import detection, placebo
from service.jobs.store import Jobs


@pytest.fixture
def jobs(lake):
    jobs = Jobs(ControlDatabase(lake))
    yield jobs
    jobs.database.close()


@pytest.fixture
def only(jobs):
    """Return the record of acme's only job."""

    def only():
        (row,) = jobs.of("acme")
        return jobs.record("acme", row.id)

    return only


@pytest.fixture
def few_detectors(monkeypatch):
    """Run only two detectors, since each is a query; tests/queries/test_detectors.py runs all of them."""
    few = {kind: DETECTORS[kind] for kind in ("broken_link", "server_errors")}
    for module in (detection, placebo):
        monkeypatch.setattr(module, "DETECTORS", few)

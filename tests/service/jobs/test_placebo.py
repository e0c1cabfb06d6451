"""Outcomes of findings that nobody repaired: false alarms are counted, and what was shipped is left out."""

from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from data.maintenance.compaction import Compactor
from queries import Warehouse
from service.jobs.detection import Detection
from service.jobs.placebo import placebo
from tests.service.jobs.findings import NOW, broken, people, ship
from tests.support.visits import land

pytestmark = pytest.mark.usefixtures("few_detectors")
FIRST, DAYS = datetime(2026, 1, 1), 70  # 70 days leave two days that have 28 before and 28 after, seven days apart


def test_false_alarms_of_unrepaired_findings_are_counted_by_detector(lake, jobs, only):
    days = [(FIRST + timedelta(day), day) for day in range(DAYS)]
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

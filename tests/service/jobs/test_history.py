"""Whatever people, detectors and the clock do, in any order, a job's history follows the diagram of statuses."""

import os
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from data import BadInput, Lake
from service.core.control_database import ControlDatabase
from service.jobs.implementations import Draft
from service.jobs.states import JobChanged, JobConflict
from service.jobs.store import Jobs
from tests.service.jobs.findings import ANNA, NOW, broken, deliver, mark, measured

STEPS = 200 if os.environ.get("TRAFFIC_FAULTS") == "all" else 20
RUNS = 60 if os.environ.get("TRAFFIC_FAULTS") == "all" else 4
OPEN = {"new", "reviewed", "approved", "sent"}
DIAGRAM = {
    None: {"new"},
    "new": {"reviewed", "approved", "dismissed"},
    "reviewed": {"approved", "dismissed"},
    "approved": {"sent", "resolved", "reviewed", "dismissed"},
    "sent": {"resolved", "reviewed", "dismissed"},
    "resolved": {"new"},
    "dismissed": {"new"},
}
OF_SYSTEM = {("approved", "sent"), ("approved", "reviewed"), ("sent", "reviewed")}
PATHS = ("/a", "/b", "/c")
has_jobs = precondition(lambda self: self.jobs.of("acme"))


class Decisions(RuleBasedStateMachine):
    """One organization's jobs about three paths, changed by actors that may have seen an old version."""

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory()
        self.lake = Lake(Path(self.folder.name) / "lake", create=True)
        self.jobs = Jobs(ControlDatabase(self.lake))
        self.now = NOW
        self.versions = {}

    def teardown(self):
        self.jobs.database.close()
        self.lake.manifest.close()
        self.folder.cleanup()

    def some(self, number):
        rows = sorted(self.jobs.of("acme"), key=lambda row: row.id)
        return rows[number % len(rows)]

    def attempt(self, write):
        """Attempt a write, and check that a rejected write changes nothing."""
        before = self.jobs.of("acme")
        try:
            write()
        except (JobConflict, BadInput):
            assert self.jobs.of("acme") == before

    @rule(path=st.sampled_from(PATHS), weight=st.sampled_from([1.0, 20.0, 200.0]))
    def find(self, path, weight):
        self.jobs.upsert(broken(path, weight=weight), self.now)

    @rule(days=st.sampled_from([1, 6, 7, 28]))
    def wait(self, days):
        self.now += timedelta(days=days)

    @rule()
    def forget(self):
        self.jobs.dismiss_gone("acme", ["broken_link"], self.now)

    @has_jobs
    @rule(
        number=st.integers(0, 5),
        action=st.sampled_from(["review", "approve_fix", "add_redirect", "resolve", "dismiss", "reopen", "nonsense"]),
        is_stale=st.booleans(),
    )
    def decide(self, number, action, is_stale):
        job = self.some(number)
        if is_stale:
            with pytest.raises(JobChanged):
                self.jobs.act("acme", job.id, action, ANNA, self.now, version=job.version - 1)
        else:
            self.attempt(lambda: self.jobs.act("acme", job.id, action, ANNA, self.now, version=job.version))

    @has_jobs
    @rule(number=st.integers(0, 5), status=st.sampled_from(["accepted", "shipped", "withdrawn"]))
    def carry_out(self, number, status):
        job = self.some(number)
        self.attempt(lambda: self.jobs.attach("acme", job.id, Draft("manual"), ANNA, self.now))
        self.attempt(lambda: mark(self.jobs, job.id, status, at=self.now))

    @has_jobs
    @rule(number=st.integers(0, 5))
    def deliver(self, number):
        deliver(self.jobs, self.some(number).id, "hook_1", self.now)

    @has_jobs
    @rule(number=st.integers(0, 5), outcome=st.sampled_from(["waiting", "improved", "unchanged", "worse"]))
    def measure(self, number, outcome):
        job = self.some(number)
        self.attempt(lambda: self.jobs.set_outcome("acme", job.id, measured(outcome), self.now))

    @invariant()
    def histories_are_paths_of_the_diagram_with_rising_versions(self):
        for job in (self.jobs.record("acme", row.id) for row in self.jobs.of("acme")):
            status = None
            for line in job.history:
                assert line.from_status == status
                if line.from_status != line.to_status:
                    assert line.to_status in DIAGRAM[status], job.history
                    assert (status, line.to_status) not in OF_SYSTEM or line.actor_kind == "system"
                status = line.to_status
            assert status == job.status
            versions = [line.version for line in job.history]
            assert versions == sorted(set(versions))
            assert job.version >= max(versions[-1], self.versions.get(job.id, 1))
            self.versions[job.id] = job.version

    @invariant()
    def a_subject_has_one_open_job_at_most_and_only_what_was_shipped_is_waited_for(self):
        rows = self.jobs.of("acme")
        open_paths = [row.path for row in rows if row.status in OPEN]
        assert len(open_paths) == len(set(open_paths))
        assert {row.implementation_status for row in rows if row.outcome_status == "waiting"} <= {"shipped"}


TestDecisions = Decisions.TestCase
TestDecisions.settings = settings(max_examples=RUNS, stateful_step_count=STEPS, derandomize=True)

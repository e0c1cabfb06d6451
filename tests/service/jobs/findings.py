"""Findings, and the people who decide on them, for tests of jobs."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from queries import DETECTORS, Finding
from service.hooks.attempts import ClaimedDelivery
from service.jobs.findings import Cause
from service.jobs.implementations import Draft
from service.jobs.records import Actor, JobOutcome, Measure
from service.jobs.tables import mark_sent
from tests.support.visits import visit

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
ANNA = Actor("anna@acme.example", "user")
REPAIR = Draft("manual", note="repaired")
DAYS = date(2026, 2, 15), date(2026, 3, 14)
ROW = {
    "domain": "go.example.com",
    "path": "/gone",
    "short_code": "gone",
    "agent_fetches": 60,
    "ai_referrals": 10,
    "days": 10,
    "first_seen": datetime(2026, 3, 1, 10),
}


def broken(path="/gone", *, rows=(), kind=DETECTORS["broken_link"], **changes):
    """Return a cause with one finding, by default a broken link on go.example.com; `changes` replace its fields."""
    subject = {"domain": "go.example.com", "path": path}
    found = replace(Finding("broken_link", "acme", subject, {**ROW, **subject}, 40.0), **changes)
    return Cause(kind, "jobs/broken_link", [found], DAYS, rows or [found.row])


def people(midnight, errors, path="/pay", visitors=40):
    """Generate a day's requests for a path, each by a different person; `errors` of them fail."""
    for one in range(visitors):
        yield visit(visited_at=midnight + one * timedelta(minutes=30), domain="go.example.com", path=path,
                    visitor=1_000 * midnight.toordinal() + one, status=500 if one < errors else 200,
                    user_agent=f"Mozilla/5.0 ({one % 4})")  # fmt: skip


def measured(status, probability=None, judged_by="answer"):
    """Return the outcome of a shipped job: 42 events in the two weeks before, none in the week after."""
    before, after = Measure(14, 42, 42), Measure(7, 0, 9)
    resolves = status == "improved" and judged_by == "answer"
    return JobOutcome(status, before, after, probability, NOW, NOW.date(), judged_by, resolves=resolves)


def mark(jobs, job_id, status="shipped", number=1, at=NOW, **how):
    """Mark a job's implementation as accepted, shipped or withdrawn."""
    return jobs.set_implementation_status("acme", job_id, number, ANNA, at, status=status, **how)


def ship(jobs, job_id, at=NOW, draft=REPAIR, **how):
    """Approve a job, attach an implementation, and mark it as shipped."""
    jobs.act("acme", job_id, "approve_fix", ANNA, at)
    jobs.attach("acme", job_id, draft, ANNA, at)
    return mark(jobs, job_id, at=at, **how)


def deliver(jobs, job_id, hook_id, now):
    """Record that a job's approval was delivered to a hook, as the sender does."""
    sent = ClaimedDelivery("evt_1", hook_id, "acme", "job.approved", job_id, b"", 0, "", "", ())
    with jobs.database.transaction() as connection:
        mark_sent(connection, sent, now)

"""Jobs in control.sqlite: repeated findings become one open job, and users' decisions change its status."""

import json
import sqlite3
from datetime import date, timedelta
from pathlib import Path

import pytest
from msgspec import structs

from data import BadInput
from service.hooks.registry import Hooks
from service.jobs import causes, tables
from service.jobs.findings import MAX_EVIDENCE_BYTES
from service.jobs.implementation_tables import excess_bytes
from service.jobs.implementations import MAX_CONTENT_BYTES, MAX_STORED_BYTES, Approval, Draft
from service.jobs.manual import manual_job
from service.jobs.records import COMMAND_LINE
from service.jobs.redirects import CheckedDraft
from service.jobs.states import JobChanged, JobConflict, JobNotFound, TooLarge
from tests.service.jobs.findings import ANNA, NOW, broken, deliver, mark, measured, ship
from tests.support.lakes import fail_at
from tests.support.tables import examples

DAY = timedelta(days=1)
PATCH = Draft("patch", "text/plain", "User-agent: *")


@pytest.fixture
def events(monkeypatch):
    """Return the events sent to hooks, in order, each with its job and with whether the service caused it."""
    events = []

    def enqueue(connection, organization, event, job, now, by_service):
        events.append((event.removeprefix("job."), job, by_service))

    monkeypatch.setattr(tables, "enqueue", enqueue)
    monkeypatch.setattr(tables, "is_awaited", lambda *_: True)
    return events


def bytes_read():
    """Return the number of bytes that this thread has read from files."""
    return int(Path("/proc/thread-self/io").read_text("ascii").split()[1])


def names(events):
    return [event for event, *_ in events]


def act(jobs, job, action, now=NOW, **how):
    return jobs.act("acme", job.id, action, ANNA, now, **how)


def test_a_finding_becomes_a_new_job_with_its_evidence(jobs, only):
    assert jobs.upsert(broken(), NOW) == "created"
    job = only()
    assert job.id.startswith("job_")
    assert (job.type, job.status, job.priority, job.version) == ("broken_link", "new", "medium", 1)
    assert (job.domain, job.path, job.short_code) == ("go.example.com", "/gone", "gone")
    assert job.title == "AI products hit a missing page on go.example.com"
    assert "by AI products (60) and by people whom they sent (10)" in job.summary
    assert job.evidence.template == "jobs/broken_link"
    assert job.evidence.replay == f"traffic jobs replay {job.id}"
    assert job.evidence.scope.start_date == date(2026, 2, 15)
    assert job.evidence.rows[0]["first_seen"] == "2026-03-01T10:00:00Z"


def test_a_new_job_offers_the_actions_of_its_type(jobs, only):
    jobs.upsert(broken(), NOW)
    offered = [(action.id, action.is_default) for action in only().actions]
    assert offered == [("add_redirect", True), ("review", False), ("dismiss", False)]


def test_messages_about_a_new_job_omit_its_history(jobs, events):
    jobs.upsert(broken(), NOW)
    assert names(events) == ["created"]
    assert "history" not in events[0][1]


def test_a_jobs_organization_is_found_by_the_jobs_id(jobs, only):
    jobs.upsert(broken(), NOW)
    assert jobs.organization_of(only().id) == "acme"
    with pytest.raises(JobNotFound):
        jobs.organization_of("job_x")


def test_a_repeated_finding_refreshes_the_open_job(jobs, only, events):
    jobs.upsert(broken(), NOW)
    rows = [{**broken().rows[0], "agent_fetches": 61}]
    assert jobs.upsert(broken(rows=rows), NOW + DAY) == "refreshed"
    job = only()
    assert (job.version, len(job.history)) == (2, 1)
    assert job.evidence.rows[0]["agent_fetches"] == 61
    assert job.last_detected_at == NOW + DAY
    assert names(events) == ["created"]


def test_a_decision_about_another_version_is_rejected(jobs, only):
    for _ in range(2):
        jobs.upsert(broken(), NOW)
    job = only()
    with pytest.raises(JobChanged) as refused:
        act(jobs, job, "review", version=3)
    assert (refused.value.job_status, refused.value.version, only()) == ("new", 2, job)
    assert act(jobs, job, "review", version=2).version == 3


class Course:
    """The life of one of acme's jobs, step by step, with a fake clock."""

    def __init__(self, jobs, only, events):
        self.jobs, self.only, self.events, self.now = jobs, only, events, NOW

    def find(self, result, weight="40"):
        assert self.jobs.upsert(broken(weight=float(weight)), self.now) == result

    def wait(self, days, seconds="0"):
        self.now += int(days) * DAY + timedelta(seconds=int(seconds))

    def act(self, action):
        act(self.jobs, self.only(), action, self.now)

    def ship(self):
        self.jobs.attach("acme", self.only().id, PATCH, ANNA, self.now)
        for status in ("accepted", "shipped"):
            mark(self.jobs, self.only().id, status, at=self.now)

    def outcome(self, status, judged_by="answer"):
        self.jobs.set_outcome("acme", self.only().id, measured(status, judged_by=judged_by), self.now)

    def forget(self, dismissed, organization="acme", kind="broken_link"):
        assert self.jobs.dismiss_gone(organization, [kind], self.now) == int(dismissed)

    def is_(self, status, outcome="none"):
        assert (self.only().status, self.only().outcome_status) == (status, outcome)

    def priority(self, priority):
        assert self.only().priority == priority

    def last(self, *words):
        line = self.only().history[-1]
        assert (line.to_status, line.actor_kind, line.note) == tuple(word if word != "-" else None for word in words)

    def told(self, *events):
        assert names(self.events) == [*events]
        assert self.events[-1][1]["outcome_status"] == self.only().outcome_status


@examples("what", "steps")
def test_a_job_has_the_expected_status_after_each_step(jobs, only, events, what, steps):
    course = Course(jobs, only, events)
    for step in steps:
        name, *words = step.split()
        getattr(course, {"is": "is_"}.get(name, name))(*words)


def test_the_hundred_heaviest_jobs_of_a_type_stay_open(jobs):
    for number in range(100):
        assert jobs.upsert(broken(f"/{number}", weight=10.0 + number), NOW) == "created"
    assert jobs.upsert(broken("/light", weight=10.0), NOW) == "ignored"
    assert jobs.upsert(broken("/heavy", weight=10.5), NOW) == "created"
    assert jobs.upsert(broken("/elsewhere", weight=1.0, organization="other"), NOW) == "created"
    assert jobs.upsert(broken("/errors", weight=1.0, type="server_errors"), NOW) == "created"
    open_paths = {row.path for row in jobs.of("acme") if row.status == "new" and row.type == "broken_link"}
    assert open_paths == {"/heavy", *(f"/{number}" for number in range(1, 100))}


def test_evidence_is_bounded_and_has_its_original_row_count(jobs, only):
    row = broken().rows[0]
    jobs.upsert(broken(rows=[{**row, "path": f"/{number:0190}"} for number in range(1_000)]), NOW)
    job = only()
    assert job.evidence_rows == 1_000
    assert 0 < len(job.evidence.rows) < 1_000
    ((stored,),) = jobs.database.rows("SELECT length(evidence) FROM jobs")
    assert 0 < stored <= MAX_EVIDENCE_BYTES


@examples("status", "allowed")
def test_users_change_statuses_only_as_in_the_diagram(jobs, only, status, allowed):
    jobs.upsert(broken(), NOW)
    for action in ("review", "approve_fix", "add_redirect", "undo", "resolve", "dismiss", "reopen"):
        jobs.database.rows("UPDATE jobs SET status = ?", [status])
        if action in allowed:
            job = act(jobs, only(), action)
            assert (job.status, job.history[-1].from_status) == (allowed[action], status)
        else:
            with pytest.raises(JobConflict, match=f"The job is {status} and cannot be changed by {action}") as refused:
                act(jobs, only(), action)
            assert refused.value.job_status == status


def test_an_approved_job_is_shipped_measured_and_resolved(jobs, only, events):
    jobs.upsert(broken(), NOW)
    job = act(jobs, only(), "add_redirect", note="yes")
    assert (job.status, job.implementation_status, job.outcome_status) == ("approved", None, "none")
    for hook in ("hook_1", "hook_2"):
        deliver(jobs, job.id, hook, NOW)
    assert only().history[-1].note == "hook_1"
    attached = jobs.attach("acme", job.id, PATCH, ANNA, NOW)
    assert (attached.number, attached.status, attached.content) == (1, "attached", "User-agent: *")
    shipped = mark(jobs, job.id, shipped_at=NOW - DAY)
    assert shipped.implementation.shipped_at == NOW - DAY
    assert (shipped.status, shipped.outcome_status) == ("sent", "waiting")
    jobs.set_outcome("acme", job.id, measured("waiting"), NOW + 3 * DAY)
    jobs.set_outcome("acme", job.id, measured("improved", 0.0004), NOW + 4 * DAY)
    job = only()
    assert (job.status, job.outcome.status, job.outcome.after.visits) == ("resolved", "improved", 9)
    assert [(line.action, line.from_status, line.to_status) for line in job.history] == [
        ("create", None, "new"), ("approve", "new", "approved"), ("deliver", "approved", "sent"),
        ("attach", "sent", "sent"), ("shipped", "sent", "sent"), ("improve", "sent", "resolved"),
    ]  # fmt: skip
    assert [(name, by_service) for name, _, by_service in events] == [
        ("created", True), ("approved", False), ("implementation_attached", False), ("shipped", False),
        ("resolved", True),
    ]  # fmt: skip
    with pytest.raises(JobConflict, match="is not waiting for an outcome"):
        jobs.set_outcome("acme", job.id, measured("worse"), NOW)


def test_nothing_can_be_attached_before_a_job_is_approved(jobs, only):
    jobs.upsert(broken(), NOW)
    with pytest.raises(JobConflict, match="before it is approved"):
        jobs.attach("acme", only().id, PATCH, ANNA, NOW)


@pytest.fixture
def job(jobs, only):
    """An approved job with the maximum number of implementations."""
    jobs.upsert(broken(), NOW)
    act(jobs, only(), "approve_fix")
    for number in range(1, 11):
        jobs.attach("acme", only().id, structs.replace(PATCH, note=f"try {number}"), ANNA, NOW)
    return only()


def test_a_job_has_at_most_ten_implementations(jobs, job):
    assert (job.implementation.number, job.implementation.note) == (10, "try 10")
    with pytest.raises(JobConflict, match="10 implementations"):
        jobs.attach("acme", job.id, PATCH, ANNA, NOW)


def test_only_the_newest_implementation_can_be_shipped(jobs, job):
    with pytest.raises(JobConflict, match="no implementation 9 that could be shipped"):
        mark(jobs, job.id, "shipped", 9)


def test_an_older_implementation_can_be_withdrawn(jobs, job):
    assert mark(jobs, job.id, "withdrawn", 9).implementation_status == "attached"


def test_a_shipped_implementation_can_be_withdrawn_for_good(jobs, job):
    mark(jobs, job.id, "shipped", 10)
    withdrawn = mark(jobs, job.id, "withdrawn", 10)
    assert (withdrawn.implementation_status, withdrawn.outcome_status) == ("withdrawn", "none")
    with pytest.raises(JobConflict, match="cannot become shipped"):
        mark(jobs, job.id, "shipped", 10)


def test_an_approval_can_reuse_an_earlier_implementation(jobs, only):
    jobs.upsert(broken(), NOW)
    act(jobs, only(), "approve_fix")
    jobs.attach("acme", only().id, PATCH, ANNA, NOW)
    act(jobs, only(), "resolve")
    job = act(jobs, only(), "reopen")
    assert (job.implementation, job.outcome_status) == (None, "none")
    for approval in (Approval(implementation_number=2), Approval("edge_page", 1)):
        with pytest.raises(BadInput, match="no implementation"):
            act(jobs, job, "approve_fix", approval=approval)
    job = act(jobs, job, "approve_fix", approval=Approval(implementation_number=1))
    assert (job.implementation.number, job.implementation_type) == (1, "patch")


@pytest.mark.parametrize("status", ["shipped", "withdrawn"])
def test_an_approval_cannot_name_a_finished_implementation(jobs, only, status):
    """Otherwise, a job would be approved with an implementation that has already ended, and no outcome would ever be
    measured."""
    jobs.upsert(broken(), NOW)
    act(jobs, ship(jobs, only().id, draft=PATCH), "resolve")
    mark(jobs, only().id, "withdrawn") if status == "withdrawn" else None
    job = act(jobs, only(), "reopen")
    with pytest.raises(JobConflict, match=f"The job is new and .* implementation 1, which is {status}"):
        act(jobs, job, "approve_fix", approval=Approval(implementation_number=1))
    assert only() == job


@pytest.fixture
def by_hand(jobs):
    """A job that Anna wrote by hand."""
    written = manual_job("acme", "Do it", "Now.", ANNA, NOW, domain="GO.example.com.", short_code="launch")
    return jobs.create(written, ANNA, NOW)


def test_a_manual_job_keeps_its_title_and_summary(by_hand):
    assert (by_hand.type, by_hand.title, by_hand.summary) == ("manual", "Do it", "Now.")


def test_a_manual_job_names_its_author_and_its_link(by_hand):
    assert (by_hand.written_by, by_hand.domain, by_hand.short_code) == (ANNA.name, "go.example.com", "launch")


def test_a_manual_job_has_no_evidence(by_hand):
    assert (by_hand.evidence, by_hand.last_detected_at, by_hand.evidence_rows) == (None, None, 0)


def test_carrying_out_a_manual_job_approves_it(jobs, events, by_hand):
    assert jobs.act("acme", by_hand.id, "carry_out", COMMAND_LINE, NOW).status == "approved"
    assert names(events) == ["created", "approved"]


def test_jobs_with_an_unknown_status_are_listed_but_not_changed(jobs):
    with jobs.database.transaction() as connection:
        connection.executemany(
            "INSERT INTO jobs (id, organization, type, status, title, created_at, updated_at) "
            "VALUES (?1, ?2, 'patch', 'open', 't', '2026-03-01T00:00:0' || ?3, '2026-03-01T00:00:0' || ?3)",
            [("1", "acme", 0), ("b", "acme", 1), ("c", "acme", 1), ("d", "other", 2)],
        )
    assert [(row.id, row.status) for row in jobs.of("acme")] == [("c", "open"), ("b", "open"), ("1", "open")]
    assert jobs.record("acme", "1").history == []
    with pytest.raises(JobConflict, match="open"):
        jobs.act("acme", "1", "approve_fix", ANNA, NOW)


def test_a_list_of_jobs_reads_only_what_it_shows(jobs, only):
    jobs.upsert(broken(), NOW)
    record, read = ship(jobs, only().id), set()

    def note(action, table, column, *_):
        if action == sqlite3.SQLITE_READ:
            read.add((table, column))
        return sqlite3.SQLITE_OK

    (reader,) = jobs.database._readers.idle
    reader.set_authorizer(note)
    (row,) = jobs.of("acme")
    reader.set_authorizer(None)
    assert all(getattr(row, name) == getattr(record, name) for name in row.__struct_fields__)
    assert ("jobs", "title") in read
    assert read.isdisjoint({("jobs", name) for name in ("subject", "evidence", "outcome", "written_by")})
    assert {table for table, _ in read} == {"jobs", "implementations"}


def test_an_organizations_contents_are_limited(jobs, only, monkeypatch):
    monkeypatch.setattr("service.jobs.implementation_tables.MAX_STORED_BYTES", 20)
    jobs.upsert(broken(), NOW)
    job = act(jobs, only(), "approve_fix")
    text = Draft("patch", "text/plain", "x" * 10)
    for _ in range(2):
        jobs.attach("acme", job.id, text, ANNA, NOW)
    with pytest.raises(TooLarge, match=r"the implementations of acme have .* the maximum; withdraw some"):
        jobs.attach("acme", job.id, text, ANNA, NOW)
    mark(jobs, job.id, "withdrawn", 1)
    jobs.attach("acme", job.id, text, ANNA, NOW)
    contents = [jobs.implementation("acme", job.id, number).content for number in (1, 2, 3)]
    assert contents == [None, text.content, text.content]


@pytest.mark.skipif(not Path("/proc/thread-self/io").exists(), reason="only Linux counts what a thread reads")
def test_checking_the_size_limit_reads_no_contents(jobs):
    text = Draft("patch", "text/plain", "x" * MAX_CONTENT_BYTES)
    for number in range(16):
        job = act(jobs, jobs.create(manual_job("acme", f"{number}", "", ANNA, NOW), ANNA, NOW), "approve_fix")
        checked = jobs.attach("acme", job.id, text, ANNA, NOW)
    draft = CheckedDraft(checked, text.content.encode(), (), None)
    before = bytes_read()
    assert excess_bytes(jobs.database, "acme", draft) == 17 * MAX_CONTENT_BYTES - MAX_STORED_BYTES
    assert bytes_read() - before < MAX_CONTENT_BYTES


def test_the_oldest_dismissed_job_makes_room_for_a_manual_job(jobs, monkeypatch):
    monkeypatch.setattr("service.jobs.tables.MAX_JOBS", 3)
    made = [jobs.create(manual_job("acme", f"{number}", "", ANNA, NOW), ANNA, NOW) for number in range(3)]
    another = manual_job("acme", "another", "", ANNA, NOW)
    with pytest.raises(JobConflict, match="acme has 3 jobs, which is the maximum; dismiss one"):
        jobs.create(another, ANNA, NOW)
    act(jobs, made[1], "dismiss")
    jobs.create(another, ANNA, NOW)
    assert {job.title for job in jobs.of("acme")} == {"0", "2", "another"}
    assert jobs.create(manual_job("other", "o", "", ANNA, NOW), ANNA, NOW).title == "o"


def test_a_finding_survives_a_concurrent_change_to_its_job(jobs, only, monkeypatch):
    jobs.upsert(broken(), NOW)
    refreshed, job = causes.refreshed, only()

    def beside(*arguments):
        if only().status == "new":
            act(jobs, job, "review")
        return refreshed(*arguments)

    monkeypatch.setattr(causes, "refreshed", beside)
    assert jobs.upsert(broken(weight=500.0), NOW) == "refreshed"
    assert (only().status, only().priority) == ("reviewed", "high")


def test_a_read_waits_for_no_other_read(jobs, only):
    jobs.upsert(broken(), NOW)
    with jobs.database.snapshot(), jobs.database.snapshot():
        assert len(jobs.of("acme")) == 1


def test_jobs_dismissed_by_the_service_are_deleted_after_90_days(jobs):
    hooks = Hooks(jobs.database, (), "", lambda: NOW)
    hooks.create("acme", "ci", "https://ci.example.com/hooks", ["job.created", "job.dismissed"])
    for path in ("/gone", "/declined", "/back"):
        jobs.upsert(broken(path), NOW)
    of = {row.path: row.id for row in jobs.of("acme")}
    ship(jobs, of["/gone"], draft=PATCH)  # tried, useless, and then no longer found
    jobs.set_outcome("acme", of["/gone"], measured("unchanged"), NOW)
    jobs.act("acme", of["/declined"], "dismiss", ANNA, NOW)
    dismissed_at = NOW + 28 * DAY
    assert jobs.dismiss_gone("acme", ["broken_link"], dismissed_at) == 2
    jobs.upsert(broken("/back"), dismissed_at + DAY)
    jobs.dismiss_gone("acme", [], dismissed_at + 90 * DAY - timedelta(seconds=1))
    jobs.dismiss_gone("other", [], dismissed_at + 90 * DAY)
    assert {row.path for row in jobs.of("acme")} == set(of)
    jobs.dismiss_gone("acme", [], dismissed_at + 90 * DAY)
    assert {row.path: row.status for row in jobs.of("acme")} == {"/declined": "dismissed", "/back": "new"}
    for table in ("job_history", "implementations", "deliveries"):
        left = {job_id for (job_id,) in jobs.database.rows(f"SELECT job_id FROM {table}")}
        assert left <= {of["/declined"], of["/back"]}, table


def test_a_job_and_its_hook_messages_are_written_atomically(jobs, only, monkeypatch):
    hooks = Hooks(jobs.database, (), "", lambda: NOW)
    hooks.create("acme", "ci", "https://ci.example.com/hooks", ["job.approved", "job.resolved"])
    jobs.upsert(broken(), NOW)
    act(jobs, only(), "review")
    act(jobs, only(), "approve_fix")
    ((event, job_id, body),) = jobs.database.rows("SELECT event, job_id, body FROM deliveries")
    assert (event, job_id) == ("job.approved", only().id)
    assert json.loads(body)["data"]["job"]["status"] == "approved"
    before = only()
    fail_at(monkeypatch, tables, "enqueue", error=sqlite3.OperationalError("disk I/O error"))
    with pytest.raises(sqlite3.OperationalError):
        act(jobs, before, "resolve")
    assert only() == before


def test_a_long_history_keeps_its_newest_and_key_lines(jobs, monkeypatch):
    monkeypatch.setattr("service.jobs.tables.MAX_STORED_HISTORY", 10)
    jobs.upsert(broken(), NOW)
    (job,) = jobs.of("acme")
    actions = ["review", "approve_fix", *["dismiss", "reopen"] * 15]
    for minute, action in enumerate(actions):
        jobs.act("acme", job.id, action, ANNA, NOW + timedelta(minutes=minute))
    lines = jobs.record("acme", job.id).history
    assert [line.action for line in lines[:4]] == ["create", "review", "approve", "dismiss"]  # from approved
    assert [line.version for line in lines[4:]] == [*range(len(actions) - 8, len(actions) + 2)]

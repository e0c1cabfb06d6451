"""Organizations' jobs, in control.sqlite. Each write, with its history and its messages, is one transaction."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from msgspec import json, structs

from data import BadInput, check_organization
from data.links.links import check_links, edit_links_once
from service.core.clock import to_text
from service.core.control_database import ControlDatabase
from service.hooks.outbox import read_deliveries
from service.jobs import findings, tables
from service.jobs.causes import MAX_OPEN_JOBS, plan
from service.jobs.implementation_tables import (
    check_shipped_redirects,
    delete_wanted_links,
    excess_bytes,
    implementation_in_force,
    read_content,
    read_implementation,
    read_redirects,
    read_redirects_version,
    read_wanted_links,
    update_implementation,
)
from service.jobs.implementations import (
    RULE_TYPE,
    Approval,
    Draft,
    approved_as,
    check_note,
    check_url,
)
from service.jobs.records import (
    SYSTEM,
    Actor,
    Change,
    ImplementationWithContent,
    Job,
    JobOutcome,
    JobRecord,
    JobRow,
    conflict,
    job_content,
    job_record,
)
from service.jobs.redirects import ShippedRedirect, checked_draft
from service.jobs.states import (
    IMPLEMENTATION_TRANSITIONS,
    OPEN,
    STATUSES,
    JobConflict,
    JobNotFound,
    next_status,
    requested_action,
)
from service.jobs.subjects import versions

MAX_SHIPPED_AGE: Final = timedelta(days=366)
"""Maximum age of a shipping time when an implementation is marked as shipped."""


class Jobs:
    """The jobs of one lake. Safe to use from several threads and processes.

    All methods block, so an event loop runs them through the database's `read` or JobService. Methods with a `version`
    expect the job to have that version; None accepts any. Writes raise JobNotFound, JobConflict, JobChanged (the
    version differs), TooLarge or BadInput; in each case, nothing has changed.
    """

    def __init__(self, database: ControlDatabase) -> None:
        self.database = database

    def of(self, organization: str) -> list[JobRow]:
        """Return every job of an organization, newest first."""
        return tables.read_listed_jobs(self.database, organization)

    def record(self, organization: str, job_id: str) -> JobRecord:
        """Return a job with its evidence, actions, implementation, outcome and history. Raises JobNotFound."""
        with self.database.snapshot() as connection:
            job = tables.read_job(connection, organization, job_id)
            history = tables.read_history(connection, job_id)
            deliveries = read_deliveries(connection, organization, job_id=job_id)
            implementation = implementation_in_force(connection, job)
        return job_record(job_content(job, implementation), history, deliveries)

    def with_content(self, organization: str, job_id: str) -> tuple[JobRecord, str | None]:
        """Return a job's record and its implementation's content. Raises JobNotFound."""
        record = self.record(organization, job_id)
        found = record.implementation
        return record, self.implementation(organization, job_id, found.number).content if found else None

    def job(self, organization: str, job_id: str) -> Job:
        """Return a job as it is stored. Raises JobNotFound."""
        with self.database.snapshot() as connection:
            return tables.read_job(connection, organization, job_id)

    def implementation(self, organization: str, job_id: str, number: int) -> ImplementationWithContent:
        """Return an implementation of a job; its content is None if none is stored. Raises JobNotFound."""
        with self.database.snapshot() as connection:
            job = tables.read_job(connection, organization, job_id)
            found = read_implementation(connection, job, number)
            return ImplementationWithContent(**structs.asdict(found), content=read_content(connection, job, number))

    def organization_of(self, job_id: str) -> str:
        """Return the organization of a job. Raises JobNotFound."""
        rows = self.database.rows("SELECT organization FROM jobs WHERE id = ?", [job_id])
        if not rows:
            raise JobNotFound(f"there is no job {job_id[:100]!r}.")
        return str(rows[0][0])

    def create(
        self, job: Job, actor: Actor, now: datetime, draft: Draft | None = None, *, is_approved: bool = False
    ) -> JobRecord:
        """Create a job, with the draft if given, unless a job with its fingerprint is open. With `is_approved`, approve
        the created or open job. Return the record of that job.
        """
        check_organization(job.organization)
        change = Change("attach", actor, now, draft.note if draft else None)
        checked = checked_draft(draft, job, change) if draft else None
        excess = excess_bytes(self.database, job.organization, checked) if checked else 0
        with self.database.transaction() as connection:
            organization = job.organization
            known = job.fingerprint and tables.job_of_fingerprint(connection, organization, job.fingerprint)
            kept = known if known and known.status in OPEN else job
            if kept is job:
                if tables.count_open(connection, organization, job.type) >= MAX_OPEN_JOBS:
                    raise JobConflict(f"too many jobs of type {job.type} are open; resolve or dismiss some first.")
                tables.make_room(connection, organization)
                tables.create_job(connection, job, Change("create", actor, now))
            if is_approved and (status := next_status("approve", kept.status)):
                tables.change_job(connection, kept, replace(kept, status=status), Change("approve", actor, now))
            if checked and kept is job:
                tables.attach(connection, tables.read_job(connection, organization, job.id), checked, change, excess)
        return self.record(job.organization, kept.id)

    def act(
        self,
        organization: str,
        job_id: str,
        action_id: str,
        actor: Actor,
        now: datetime,
        *,
        version: int | None = None,
        note: str | None = None,
        approval: Approval | None = None,
    ) -> JobRecord:
        """Review, approve (by its action's id), dismiss, resolve or reopen a job, or undo its approval; return it."""
        check_note(note)
        with self.database.transaction() as connection:
            job = tables.read_expected_job(connection, organization, job_id, version)
            action = requested_action(job.action_id, action_id)
            if approval and action != "approve":
                raise BadInput(f"implementation_type and implementation_id require an approval, not {action_id}.")
            status = next_status(action, job.status)
            if status is None:
                raise conflict(job, f"cannot be changed by {action_id}")
            if action == "undo" and job.outcome_status == "waiting":
                raise conflict(job, "has a shipped implementation; withdraw it before you undo the approval")
            after = replace(approved_as(connection, job, approval) if approval else job, status=status)
            if action == "reopen":
                after = replace(after, implementation_number=None, outcome_status="none", outcome=None)
            tables.change_job(connection, job, after, Change(action, actor, now, note))
        return self.record(organization, job_id)

    def attach(
        self, organization: str, job_id: str, draft: Draft, actor: Actor, now: datetime, *, version: int | None = None
    ) -> ImplementationWithContent:
        """Attach an implementation as `add_implementation` does, and write the link that it needs."""
        added = self.add_implementation(organization, job_id, draft, actor, now, version=version)
        self.write_links(organization)
        return added

    def add_implementation(
        self, organization: str, job_id: str, draft: Draft, actor: Actor, now: datetime, *, version: int | None = None
    ) -> ImplementationWithContent:
        """Attach an implementation to an approved job; it takes effect immediately. Return it with its content.

        A redirect from the path of a short code needs a link, which `write_links` writes. Raises LakeDamaged if the
        links cannot be read; in that case, nothing has changed.
        """
        with self.database.snapshot() as connection:
            job = tables.read_expected_job(connection, organization, job_id, version)
        change = Change("attach", actor, now, draft.note)
        checked = checked_draft(draft, job, change)
        if checked.link:
            check_links(self.database.lake, organization)
        excess = excess_bytes(self.database, organization, checked)
        with self.database.transaction() as connection:
            job = tables.read_expected_job(connection, organization, job_id, version)
            number = tables.attach(connection, job, checked, change, excess)
        return self.implementation(organization, job_id, number)

    def write_links(self, organization: str) -> None:
        """Write the links that attached redirects need, each once, and wait for links that are being written.

        This takes a long time if there are many links. Raises LakeDamaged or OSError; in that case, a later call writes
        them.
        """
        database = self.database
        if made := edit_links_once(database.lake, organization, lambda: read_wanted_links(database, organization)):
            with database.transaction() as connection:
                delete_wanted_links(connection, made)

    def redirects(self, organization: str, domain: str = "") -> list[ShippedRedirect]:
        """Return an organization's shipped redirects; with a domain, only redirects that work on it."""
        return read_redirects(self.database, organization, domain)

    def redirects_version(self, organization: str) -> str:
        """Return a value that changes whenever an organization's shipped redirects may have changed."""
        return read_redirects_version(self.database, organization)

    def set_implementation_status(
        self,
        organization: str,
        job_id: str,
        number: int,
        actor: Actor,
        now: datetime,
        *,
        status: str,
        version: int | None = None,
        shipped_at: datetime | None = None,
        url: str | None = None,
        note: str = "",
    ) -> JobRecord:
        """Mark an implementation as accepted, shipped (which starts measuring) or withdrawn; return the record."""
        if status not in IMPLEMENTATION_TRANSITIONS["attached"]:
            raise BadInput(f"status is {status!r}; use {', '.join(IMPLEMENTATION_TRANSITIONS['attached'])}.")
        if shipped_at and (status != "shipped" or shipped_at > now):
            raise BadInput("shipped_at requires the status shipped, and must not be in the future.")
        if shipped_at and shipped_at < now - MAX_SHIPPED_AGE:
            raise BadInput(f"shipped_at must be within the last {MAX_SHIPPED_AGE.days} days to be measured.")
        if url is not None:
            check_url(url)
        shipped = (shipped_at or now) if status == "shipped" else None
        with self.database.transaction() as connection:
            job = tables.read_expected_job(connection, organization, job_id, version)
            before = read_implementation(connection, job, number)
            is_in_force = number == job.implementation_number
            if status not in IMPLEMENTATION_TRANSITIONS[before.status]:
                raise conflict(job, f"has implementation {number}, which is {before.status} and cannot become {status}")
            if status != "withdrawn" and not (is_in_force and job.status in ("approved", "sent")):
                raise conflict(job, f"has no implementation {number} that could be {status}")
            if status == "shipped" and before.content_type == RULE_TYPE:
                check_shipped_redirects(connection, job, number)
            changes = {"status": status, "shipped_at": shipped or before.shipped_at, "url": url or before.url}
            update_implementation(connection, job, before, structs.replace(before, **changes))
            outcome = {"shipped": "waiting", "withdrawn": "none"}.get(status) if is_in_force else None
            after = replace(job, outcome_status=outcome, outcome=None) if outcome else job
            told = f"implementation {number}{note and ', '}{note}"
            tables.change_job(connection, job, after, Change(status, actor, now, told))
        return self.record(organization, job_id)

    def upsert(self, cause: findings.Cause, now: datetime) -> str:
        """Create or refresh the job for a detected cause; return created, refreshed, reopened or ignored."""
        check_organization(cause.organization)
        while True:
            with self.database.snapshot() as connection:
                planned = plan(connection, cause, now)
            with self.database.transaction() as connection:
                types = findings.family_of(cause.findings[0].type)
                if versions(connection, cause.organization, types) == planned.versions:  # nothing has changed
                    planned.apply(connection)
                    return planned.result

    def dismiss_gone(self, organization: str, types: list[str], now: datetime) -> int:
        """After a run, dismiss undecided jobs of these types that have not been found for 28 days; return their number.
        Delete jobs of any type that the service dismissed as gone, merged or too light at least 90 days ago.
        """
        with self.database.transaction() as connection:
            tables.delete_expired(connection, organization, to_text(now - findings.DELETED_AFTER))
            return sum(findings.dismiss_gone(connection, organization, kind, now) for kind in types)

    def set_outcome(self, organization: str, job_id: str, outcome: JobOutcome, now: datetime) -> None:
        """Store the measured outcome of a shipped implementation.

        `improved` resolves the job if the outcome is certain enough; `unchanged` and `worse` return it to review.
        Raises JobNotFound, and JobConflict unless the job is waiting for an outcome.
        """
        status = outcome.status
        stored = json.encode(outcome).decode()
        action = "fail" if status in ("unchanged", "worse") else "improve" if outcome.resolves else "measure"
        with self.database.transaction() as connection:
            job = tables.read_job(connection, organization, job_id)
            if job.outcome_status != "waiting":
                raise conflict(job, "is not waiting for an outcome")
            moved = None if action == "measure" else next_status(action, job.status)
            note = None if status == "waiting" else status
            done = action if moved else "measure" if note else None
            after = replace(job, status=moved or job.status, outcome_status=status, outcome=stored)
            tables.change_job(connection, job, after, Change(done, SYSTEM, now, note))

    def counts(self) -> dict[str, int]:
        """Return the number of jobs in all organizations, by status."""
        counts = dict(self.database.rows("SELECT status, count(*) FROM jobs GROUP BY status"))
        return {status: counts.get(status, 0) for status in STATUSES}

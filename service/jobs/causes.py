"""Plans which jobs a cause creates or changes. Undecided jobs with the same cause are merged; approved jobs keep
their subjects.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from service.jobs.findings import Cause, family_of, new_job, refreshed
from service.jobs.records import SYSTEM, Change, Job
from service.jobs.states import CLOSED, DECIDED, OPEN, PRIORITIES, UNDECIDED
from service.jobs.subjects import KnownJob, known_jobs
from service.jobs.tables import change_job, create_job, read_job

MAX_OPEN_JOBS: Final = 100
"""Maximum number of open jobs per type and organization. At the maximum, a cause without an open job replaces the
lightest new job if that is lighter, and is otherwise ignored."""
RETURNS_AFTER: Final = timedelta(days=7)
"""A resolved job that is found again this long after its resolution is reopened."""


@dataclass(frozen=True)
class Write:
    """A job to change from `before`, or to create if `before` is None."""

    before: Job | None
    after: Job
    change: Change


@dataclass(frozen=True)
class Plan:
    """The planned writes for a cause, and their effect: created, refreshed, reopened or ignored."""

    result: str
    writes: Sequence[Write]
    known: Sequence[KnownJob]
    """The jobs that the plan is based on."""

    @property
    def versions(self) -> list[tuple[str, int]]:
        """The id and version of each job in `known`. If these change before the plan is applied, it is stale."""
        return [(one.id, one.version) for one in self.known]

    def apply(self, connection: sqlite3.Connection) -> None:
        """Create and change the jobs as planned."""
        for one in self.writes:
            if one.before:
                change_job(connection, one.before, one.after, one.change)
            else:
                create_job(connection, one.after, one.change)


def plan(connection: sqlite3.Connection, cause: Cause, now: datetime) -> Plan:
    """Plan the writes for a cause.

    The subjects of approved jobs are frozen, so these jobs get evidence on their own subjects only. Subjects of a job
    that was resolved recently or dismissed by a person are ignored, as is a whole cause that a person dismissed. Other
    subjects go to the oldest undecided job that has the cause or one of its subjects; the other such jobs are merged
    into it. If there is none, a closed job is reopened or a new one created, within MAX_OPEN_JOBS.
    """
    organization, kind = cause.organization, cause.findings[0].type
    known = known_jobs(connection, organization, family_of(kind))  # newest first
    holders = [next((one for one in known if finding.subject in one.subjects), None) for finding in cause.findings]
    of_cause = [one for one in known if one.fingerprint == cause.fingerprint]
    is_refused = bool(of_cause) and of_cause[0].status == "dismissed" and not _returns(of_cause[0], now)
    writes: list[Write] = []

    for holder in {one.id: one for one in holders if one and one.status in DECIDED}.values():
        frozen = [finding for finding, one in zip(cause.findings, holders, strict=True) if one is holder]
        job = read_job(connection, organization, holder.id)
        writes.append(_refreshed(job, cause.only(frozen), now))
    rest = [
        finding
        for finding, one in zip(cause.findings, holders, strict=True)
        if not is_refused and (one is None or one.status in UNDECIDED or (one.status in CLOSED and _returns(one, now)))
    ]
    if not rest:
        return Plan("refreshed" if writes else "ignored", writes, known)
    found = cause.only(rest)

    related = [one for one in known if one in of_cause or one in holders]
    if undecided := [one for one in related if one.status in UNDECIDED]:
        *others, oldest = undecided
        writes.append(_refreshed(read_job(connection, organization, oldest.id), found, now))
        for one in others:
            job, merged = read_job(connection, organization, one.id), Change("merge", SYSTEM, now, f"into {oldest.id}")
            writes.append(Write(job, replace(job, status="dismissed"), merged))
        return Plan("refreshed", writes, known)

    open_ones = [one for one in known if one.type == kind and one.status in OPEN]
    if len(open_ones) >= MAX_OPEN_JOBS:
        lighter = [one for one in open_ones if one.status == "new" and one.weight < found.weight]
        if not lighter:
            return Plan("refreshed" if writes else "ignored", writes, known)
        job = read_job(connection, organization, min(lighter, key=lambda one: one.weight).id)
        expired = Change("expire", SYSTEM, now, "more important jobs were found")
        writes.append(Write(job, replace(job, status="dismissed"), expired))
    if returning := [one for one in related if one.status in CLOSED and _returns(one, now)]:
        job = read_job(connection, organization, returning[0].id)
        fresh = replace(job, status="new", implementation_number=None, outcome_status="none", outcome=None)
        writes.append(Write(job, refreshed(fresh, found, now), Change("return", SYSTEM, now)))
        return Plan("reopened", writes, known)
    older = f"the same cause as {of_cause[0].id}" if of_cause else None
    return Plan("created", [*writes, Write(None, new_job(found, now), Change("create", SYSTEM, now, older))], known)


def _refreshed(job: Job, cause: Cause, now: datetime) -> Write:
    after = refreshed(job, cause, now)
    is_heavier = PRIORITIES.index(after.priority) > PRIORITIES.index(job.priority)
    return Write(job, after, Change("update" if is_heavier else None, SYSTEM, now))


def _returns(job: KnownJob, now: datetime) -> bool:
    """Return whether a closed job that is found again is reopened: after RETURNS_AFTER if it was resolved; if it was
    dismissed, only if the service did so.
    """
    if job.closed_at is None or job.status == "resolved":
        return job.closed_at is None or now - job.closed_at >= RETURNS_AFTER
    return job.closed_by == SYSTEM.kind
